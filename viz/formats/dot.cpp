// Sets neither `size` nor `dpi`: with them Debian's Graphviz clips or blanks the picture.
#include "viz/formats/dot.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "viz/label.hpp"
#include "viz/overlay.hpp"

namespace pw::viz {
namespace {

// The colours of Okabe and Ito, distinguishable with all kinds of colour vision; each also has a
// glyph or a dash.
constexpr const char* kBlue = "#0072B2";
constexpr const char* kVermilion = "#D55E00";
constexpr const char* kOrange = "#E69F00";
constexpr const char* kGreen = "#009E73";
constexpr const char* kInk = "#333333";

constexpr std::size_t kStripes = 12;

const char* color_of(Mark mark) {
  switch (mark) {
    case Mark::plain: return kInk;
    case Mark::added: return kBlue;
    case Mark::removed: return kVermilion;
    case Mark::changed: return kOrange;
  }
  return kInk;
}

const char* name_of(Mark mark) {
  switch (mark) {
    case Mark::plain: return "plain";
    case Mark::added: return "added";
    case Mark::removed: return "removed";
    case Mark::changed: return "changed";
  }
  return "plain";
}

const char* name_of(BoxKind kind) {
  switch (kind) {
    case BoxKind::node: return "node";
    case BoxKind::product: return "product";
    case BoxKind::splitting: return "splitting";
    case BoxKind::input: return "input";
    case BoxKind::output: return "output";
    case BoxKind::whole: return "whole";
  }
  return "node";
}

std::string shape_of(BoxKind kind) {
  switch (kind) {
    case BoxKind::node: return "shape=box, fillcolor=\"#ffffff\"";
    case BoxKind::product: return "shape=box, fillcolor=\"#e6f1f8\"";
    case BoxKind::splitting: return "shape=box, fillcolor=\"#fbeedb\"";
    case BoxKind::input: return "shape=ellipse, fillcolor=\"#f2f2f2\"";
    case BoxKind::output: return "shape=ellipse, fillcolor=\"#f2f2f2\", peripheries=2";
    case BoxKind::whole: return "shape=box3d, fillcolor=\"#ffffff\"";
  }
  return "shape=box";
}

/// Returns the colour of an overlay, which overrides the box's own.
std::string shade(const Box& box) {
  if (box.shade < 0) return {};
  const Shade shade = shade_of(box.shade);
  return ", fillcolor=\"" + shade.fill + "\", fontcolor=\"" + shade.text + "\"";
}

std::string stripes() {
  std::string list;
  for (std::size_t i = 0; i < kStripes; ++i)
    list += std::string(i == 0 ? "" : ":") + (i % 2 == 0 ? "#e2e2e2" : "#f6f6f6");
  return list;
}

std::string cluster_style(GroupKind kind) {
  switch (kind) {
    case GroupKind::captured:
      return "style=filled, fillcolor=\"#e5f5ef\", color=\"" + std::string(kGreen) +
             "\", penwidth=1.5";
    case GroupKind::eager:
      return "style=striped, fillcolor=\"" + stripes() + "\", color=\"#bbbbbb\"";
    case GroupKind::layer:
    case GroupKind::run:
      return "style=\"filled,rounded\", fillcolor=\"#f7f7f7\", color=\"#999999\"";
    case GroupKind::module:
      return "style=\"filled,rounded\", fillcolor=\"#ffffff\", color=\"#999999\"";
  }
  return "";
}

const char* class_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::captured: return "captured";
    case GroupKind::eager: return "eager";
    case GroupKind::layer: return "layer";
    case GroupKind::run: return "run";
    case GroupKind::module: return "module";
  }
  return "";
}

std::string box_text(const Box& box) {
  std::string text;
  if (box.mark != Mark::plain) text = std::string(glyph(box.mark)) + " ";
  for (std::size_t i = 0; i < box.lines.size(); ++i) text += (i == 0 ? "" : "\n") + box.lines[i];
  return text;
}

std::string tooltip(bool wanted, const std::string& text) {
  return wanted ? ", tooltip=" + dot_string(text) : std::string();
}

constexpr double kHeading = 40;  // above the picture, for its title and caption

/// Graphviz coordinates start at the lower left corner.
double upwards(const ScenePlaces& places, double y) { return places.height - y; }

std::string box_place(const ScenePlaces& places, const Place& box) {
  constexpr double kInch = 72;
  return fmt::format(", pos=\"{:.1f},{:.1f}\", width={:.3f}, height={:.3f}, fixedsize=true",
                     box.x + box.width / 2, upwards(places, box.y + box.height / 2),
                     box.width / kInch, box.height / kInch);
}

/// The end of the last curve is the tip of the arrow.
std::string edge_place(const ScenePlaces& places, const std::vector<double>& curves, bool reverse) {
  const std::size_t n = curves.size();
  std::string out = fmt::format(", pos=\"{},{:.1f},{:.1f}", reverse ? 's' : 'e', curves[n - 2],
                                upwards(places, curves[n - 1]));
  std::vector<std::string> points;
  for (std::size_t i = 0; i < n; i += 2) {
    const double lift = i + 2 == n ? 5 : 0;  // the arrow's length
    points.push_back(
        fmt::format(" {:.1f},{:.1f}", curves[i], upwards(places, curves[i + 1] - lift)));
  }
  if (reverse)
    for (std::size_t i = points.size(); i-- > 0;) out += points[i];
  else
    for (const std::string& point : points) out += point;
  return out + "\"";
}

std::string corners(const ScenePlaces& places, const Place& at) {
  return fmt::format("\"{:.1f},{:.1f},{:.1f},{:.1f}\"", at.x, upwards(places, at.y + at.height),
                     at.x + at.width, upwards(places, at.y));
}

class DotWriter {
 public:
  DotWriter(const Scene& scene, bool tooltips, const ScenePlaces* places)
      : scene_(scene), tooltips_(tooltips), places_(places) {}

  std::string run() {
    heading();
    boxes_.resize(scene_.clusters.size());
    clusters_.resize(scene_.clusters.size());
    for (std::size_t i = 0; i < scene_.boxes.size(); ++i) {
      if (scene_.boxes[i].cluster == kNobody)
        box(i, "  ");
      else
        boxes_[scene_.boxes[i].cluster].push_back(i);
    }
    // From the inside out: an empty cluster is not drawn.
    std::vector<std::size_t> outermost;
    for (std::size_t c = scene_.clusters.size(); c-- > 0;) {
      if (boxes_[c].empty() && clusters_[c].empty()) continue;
      const std::uint32_t parent = scene_.clusters[c].parent;
      (parent == kNobody ? outermost : clusters_[parent]).push_back(c);
    }
    std::reverse(outermost.begin(), outermost.end());
    for (std::vector<std::size_t>& list : clusters_) std::reverse(list.begin(), list.end());
    for (const std::size_t c : outermost) cluster(c, "  ");
    for (std::size_t i = 0; i < scene_.edges.size(); ++i) edge(i);
    return out_ + "}\n";
  }

 private:
  void heading() {
    out_ =
        "digraph piecewise {\n  graph [label=" + dot_string(scene_.title + "\n" + scene_.caption) +
        ", labelloc=t, fontname=\"DejaVu Sans\", fontsize=11, rankdir=TB, ranksep=0.28, "
        "nodesep=0.22";
    if (places_ != nullptr)
      out_ += fmt::format(", bb=\"0,0,{0:.1f},{1:.1f}\", lp=\"{2:.1f},{3:.1f}\"", places_->width,
                          places_->height + kHeading, places_->width / 2,
                          places_->height + kHeading / 2);
    out_ +=
        "];\n  node [fontname=\"DejaVu Sans\", fontsize=9, style=filled, margin=\"0.09,0.05\", "
        "height=0.3, penwidth=1];\n  edge [arrowsize=0.6, penwidth=0.9];\n";
  }

  void box(std::size_t i, const std::string& indent) {
    const Box& box = scene_.boxes[i];
    const std::string id = "b" + std::to_string(i);
    out_ += indent + id + " [id=" + id + ", class=\"box " + name_of(box.kind) + " " +
            name_of(box.mark) + "\", " + shape_of(box.kind) + shade(box) +
            ", label=" + dot_string(box_text(box)) + tooltip(tooltips_, box.tooltip) +
            ", color=\"" + color_of(box.mark) + "\"";
    if (box.mark != Mark::plain) out_ += ", penwidth=2";
    if (box.mark == Mark::removed) out_ += ", style=\"filled,dashed\"";
    if (places_ != nullptr) out_ += box_place(*places_, places_->boxes[i]);
    out_ += "];\n";
  }

  /// Recurses at most kDeepest levels.
  void cluster(std::size_t c, const std::string& indent) {
    const Cluster& cluster = scene_.clusters[c];
    const std::string id = std::to_string(c), deeper = indent + "  ";
    out_ += indent + "subgraph cluster_" + id + " {\n" + deeper + "id=c" + id +
            "; class=\"cluster_of " + class_of(cluster.kind) +
            "\"; label=" + dot_string(shorten(cluster.title, 60)) + ";\n" + deeper +
            "graph [labeljust=l" + tooltip(tooltips_, cluster.tooltip) + ", " +
            cluster_style(cluster.kind);
    if (places_ != nullptr) {
      const Place& at = places_->clusters[c];
      const double half =
          static_cast<double>(std::min<std::size_t>(count_characters(cluster.title), 60)) * 5.6 / 2;
      out_ += ", bb=" + corners(*places_, at) +
              fmt::format(", lp=\"{:.1f},{:.1f}\", fontname=\"DejaVu Sans\", fontsize=9",
                          at.x + 8 + half, upwards(*places_, at.y + 10));
    }
    out_ += "];\n";
    for (const std::size_t i : boxes_[c]) box(i, deeper);
    for (const std::size_t inner : clusters_[c]) this->cluster(inner, deeper);
    out_ += indent + "}\n";
  }

  void edge(std::size_t i) {
    const Edge& edge = scene_.edges[i];
    const std::string from = "b" + std::to_string(edge.from), to = "b" + std::to_string(edge.to);
    // Drawn against the flow, so that the ranks of a folded part are those of a single copy of
    // it.
    out_ += "  " + (edge.back ? to + " -> " + from : from + " -> " + to) + " [id=e" +
            std::to_string(i) + ", class=\"edge " + name_of(edge.mark) +
            (edge.back ? " back" : "") + "\"" + tooltip(tooltips_, edge.tooltip) + ", color=\"" +
            color_of(edge.mark) + "\"";
    if (edge.mark != Mark::plain) out_ += ", penwidth=1.8";
    if (edge.mark == Mark::removed)
      out_ += ", style=dashed";
    else if (edge.back)
      out_ += ", style=dotted, penwidth=1.4";
    if (edge.back) out_ += edge.from == edge.to ? "" : ", dir=back, constraint=false";
    if (places_ != nullptr)
      out_ += edge_place(*places_, places_->edges[i], edge.back && edge.from != edge.to);
    out_ += "];\n";
  }

  const Scene& scene_;
  bool tooltips_;
  const ScenePlaces* places_;
  std::vector<std::vector<std::size_t>> boxes_, clusters_;  // by their cluster
  std::string out_;
};

}  // namespace

std::string dot_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '&': out += "&amp;"; break;  // Graphviz also decodes entities in plain strings
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      default: out += c;
    }
  }
  return out + "\"";
}

std::string to_dot(const Scene& scene, bool tooltips, const ScenePlaces* places) {
  return DotWriter(scene, tooltips, places).run();
}

}  // namespace pw::viz
