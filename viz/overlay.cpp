#include "viz/overlay.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "viz/label.hpp"

namespace pw::viz {

std::vector<std::pair<std::uint32_t, double>> numbers_of(const UnionGraph& graph,
                                                         const Overlay& overlay) {
  std::vector<std::pair<std::uint32_t, double>> out;
  for (std::uint32_t at = 0; at < graph.nodes.size(); ++at) {
    const UnionNode& node = graph.nodes[at];
    const Graph& g = graph.graph_of(node);
    auto found = overlay.numbers.find(std::string(g.node_name(node.id)));
    for (std::size_t r = 0; found == overlay.numbers.end() && r < g.result_count(node.id); ++r)
      found = overlay.numbers.find(std::string(g.value_name(g.result(node.id, r))));
    if (found != overlay.numbers.end()) out.emplace_back(at, found->second);
  }
  return out;
}

void shade_boxes(Scene& scene, const UnionGraph& graph, const Overlay& overlay) {
  const auto numbers = numbers_of(graph, overlay);
  if (numbers.empty()) {
    scene.caption += "; no node has a number in " + clean(overlay.title);
    return;
  }
  const auto by_number = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end(), by_number);
  const double low = least->second, high = most->second;
  for (const auto& [at, number] : numbers) {
    if (scene.box_of[at] == kNobody) continue;
    double& shade = scene.boxes[scene.box_of[at]].shade;
    shade = std::max(shade, high > low ? (number - low) / (high - low) : 1.0);
  }
  scene.caption += fmt::format(
      "; {}: {} (dark) to {} (light), {} a number", clean(overlay.title), low, high,
      grouped_digits(numbers.size()) + (numbers.size() == 1 ? " node has" : " nodes have"));
}

Shade shade_of(double share) {
  constexpr std::array<std::array<double, 3>, 5> kStops{
      {{0, 32, 77}, {64, 77, 107}, {124, 123, 120}, {188, 175, 111}, {255, 234, 70}}};
  const double at = std::clamp(share, 0.0, 1.0) * 4;
  const std::size_t i = std::min<std::size_t>(3, static_cast<std::size_t>(at));
  std::array<double, 3> rgb{};
  for (std::size_t c = 0; c < 3; ++c)
    rgb[c] = std::round(kStops[i][c] +
                        (kStops[i + 1][c] - kStops[i][c]) * (at - static_cast<double>(i)));
  const auto light = [](double c) { return std::pow(c / 255, 2.2); };
  const bool bright = .2126 * light(rgb[0]) + .7152 * light(rgb[1]) + .0722 * light(rgb[2]) > .18;
  return {fmt::format("#{:02x}{:02x}{:02x}", static_cast<int>(rgb[0]), static_cast<int>(rgb[1]),
                      static_cast<int>(rgb[2])),
          bright ? "#000000" : "#ffffff"};
}

}  // namespace pw::viz
