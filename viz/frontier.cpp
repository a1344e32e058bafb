#include "viz/frontier.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "viz/formats/svg.hpp"

namespace pw {
namespace {

constexpr double kLeft = 70, kTop = 20, kWide = 540, kHigh = 320;
constexpr double kLeast = 0.01;  // percent
struct Look {
  const char *color, *dash;
};
// Okabe and Ito's colours; dashes distinguish curves in grayscale.
constexpr std::array<Look, 4> kLooks{
    {{"#0072b2", "none"}, {"#d55e00", "8 4"}, {"#009e73", "2 3"}, {"#cc79a7", "8 3 2 3"}}};

class Chart {
 public:
  explicit Chart(const std::vector<FrontierCurve>& curves) {
    for (const FrontierCurve& curve : curves)
      for (const auto* list : {&curve.points, &curve.marks})
        for (const auto& [graphs, above] : *list) {
          most_graphs_ = std::max(most_graphs_, static_cast<double>(graphs));
          if (std::isfinite(above)) most_ = std::max(most_, above);
        }
    most_ = std::pow(10, std::ceil(std::log10(most_)));
  }

  std::string draw(const std::vector<FrontierCurve>& curves) {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
        kLeft + kWide + 30, kTop + kHigh + 60);
    axes();
    for (std::size_t i = 0; i < curves.size(); ++i) curve(curves[i], i);
    return out_ + "</svg>\n";
  }

 private:
  [[nodiscard]] double x(double graphs) const {
    return kLeft + kWide * std::log(std::max(graphs, 1.0)) / std::log(most_graphs_);
  }
  [[nodiscard]] double y(double above) const {
    const double at = std::log10(std::clamp(above, kLeast, most_) / kLeast);
    return kTop + kHigh * (1 - at / std::log10(most_ / kLeast));
  }
  void line(double x1, double y1, double x2, double y2) {
    out_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ccc\"/>\n", x1, y1,
        x2, y2);
  }
  void text(double at_x, double at_y, const char* anchor, const std::string& words,
            const std::string& more = "") {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", at_x,
                        at_y, anchor, more, viz::xml_escaped(words));
  }
  void axes() {
    for (double graphs = 1; graphs <= most_graphs_; graphs *= 2) {
      line(x(graphs), kTop, x(graphs), kTop + kHigh);
      text(x(graphs), kTop + kHigh + 16, "middle", fmt::format("{}", graphs));
    }
    for (double above = kLeast; above <= most_ * 1.001; above *= 10) {
      line(kLeft, y(above), kLeft + kWide, y(above));
      text(kLeft - 6, y(above) + 4, "end", fmt::format("{:g} %", above));
    }
    text(kLeft + kWide / 2, kTop + kHigh + 38, "middle", "captured sizes");
    const double middle = kTop + kHigh / 2;
    text(14, middle, "middle", "time above the minimum",
         fmt::format(" transform=\"rotate(-90 14 {:.1f})\"", middle));
  }
  void curve(const FrontierCurve& curve, std::size_t i) {
    const Look& look = kLooks[i % kLooks.size()];
    out_ += fmt::format(
        "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{}\" "
        "points=\"",
        look.color, look.dash);
    for (const auto& [graphs, above] : curve.points)
      if (graphs > 0)
        out_ += fmt::format("{:.1f},{:.1f} ", x(static_cast<double>(graphs)), y(above));
    out_ += fmt::format("\"><title>{}</title></polyline>\n", viz::xml_escaped(curve.name));
    for (const auto& [graphs, above] : curve.marks)
      out_ += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"white\" stroke=\"{}\" "
          "stroke-width=\"2\"><title>{}: the default sizes, {}, {:.2f} % above the "
          "minimum</title></circle>\n",
          x(static_cast<double>(graphs)), y(above), look.color, viz::xml_escaped(curve.name),
          graphs, above);
    const double row = kTop + 18 + 18 * static_cast<double>(i);
    out_ += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{2:.1f}\" x2=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\" "
        "stroke-width=\"2\" stroke-dasharray=\"{4}\"/>\n",
        kLeft + kWide - 190, kLeft + kWide - 160, row - 4, look.color, look.dash);
    text(kLeft + kWide - 152, row, "start", curve.name + " (○ default sizes)");
  }

  double most_graphs_ = 2, most_ = 1;
  std::string out_;
};

}  // namespace

std::string frontier_svg(const std::vector<FrontierCurve>& curves) {
  return Chart(curves).draw(curves);
}

}  // namespace pw
