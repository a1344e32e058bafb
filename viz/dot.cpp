// Exports to_dot. Neither `size` nor `dpi` is set: Debian's Graphviz clips or blanks the picture
// then.
#include "viz/dot.hpp"

#include "viz/label.hpp"

namespace pw::viz {
namespace {

// The colours of Okabe and Ito, which all kinds of colour vision tell apart; each has a glyph or a
// dash too.
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
  }
  return "";
}

const char* class_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::captured: return "captured";
    case GroupKind::eager: return "eager";
    case GroupKind::layer: return "layer";
    case GroupKind::run: return "run";
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

void write_box(std::string& out, const Box& box, std::size_t i, bool tooltips, const char* indent) {
  const std::string id = "b" + std::to_string(i);
  out += std::string(indent) + id + " [id=" + id + ", class=\"box " + name_of(box.kind) + " " +
         name_of(box.mark) + "\", " + shape_of(box.kind) + ", label=" + dot_string(box_text(box)) +
         tooltip(tooltips, box.tooltip) + ", color=\"" + color_of(box.mark) + "\"";
  if (box.mark != Mark::plain) out += ", penwidth=2";
  if (box.mark == Mark::removed) out += ", style=\"filled,dashed\"";
  out += "];\n";
}

void write_edge(std::string& out, const Edge& edge, std::size_t i, bool tooltips) {
  const std::string from = "b" + std::to_string(edge.from), to = "b" + std::to_string(edge.to);
  // Drawn against the flow, so that the ranks of a folded part stay as they are in one copy of it.
  out += "  " + (edge.back ? to + " -> " + from : from + " -> " + to) + " [id=e" +
         std::to_string(i) + ", class=\"edge " + name_of(edge.mark) + (edge.back ? " back" : "") +
         "\"" + tooltip(tooltips, edge.tooltip) + ", color=\"" + color_of(edge.mark) + "\"";
  if (edge.mark != Mark::plain) out += ", penwidth=1.8";
  if (edge.mark == Mark::removed)
    out += ", style=dashed";
  else if (edge.back)
    out += ", style=dotted, penwidth=1.4";
  if (edge.back) out += edge.from == edge.to ? "" : ", dir=back, constraint=false";
  out += "];\n";
}

}  // namespace

std::string dot_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '&': out += "&amp;"; break;  // Graphviz reads entities in plain strings too
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      default: out += c;
    }
  }
  return out + "\"";
}

std::string to_dot(const Scene& scene, bool tooltips) {
  std::string out = "digraph piecewise {\n";
  out += "  graph [label=" + dot_string(scene.title + "\n" + scene.caption) +
         ", labelloc=t, fontname=\"DejaVu Sans\", fontsize=11, rankdir=TB, ranksep=0.28, "
         "nodesep=0.22];\n";
  out +=
      "  node [fontname=\"DejaVu Sans\", fontsize=9, style=filled, margin=\"0.09,0.05\", "
      "height=0.3, penwidth=1];\n";
  out += "  edge [arrowsize=0.6, penwidth=0.9];\n";
  std::vector<std::vector<std::size_t>> inside(scene.clusters.size());
  for (std::size_t i = 0; i < scene.boxes.size(); ++i) {
    if (scene.boxes[i].cluster == kNobody)
      write_box(out, scene.boxes[i], i, tooltips, "  ");
    else
      inside[scene.boxes[i].cluster].push_back(i);
  }
  for (std::size_t c = 0; c < scene.clusters.size(); ++c) {
    if (inside[c].empty()) continue;
    const Cluster& cluster = scene.clusters[c];
    const std::string id = std::to_string(c);
    out += "  subgraph cluster_" + id + " {\n    id=c" + id + "; class=\"cluster_of " +
           class_of(cluster.kind) + "\"; label=" + dot_string(shorten(cluster.title, 60)) +
           ";\n    graph [labeljust=l" + tooltip(tooltips, cluster.tooltip) + ", " +
           cluster_style(cluster.kind) + "];\n";
    for (const std::size_t i : inside[c]) write_box(out, scene.boxes[i], i, tooltips, "    ");
    out += "  }\n";
  }
  for (std::size_t i = 0; i < scene.edges.size(); ++i) write_edge(out, scene.edges[i], i, tooltips);
  return out + "}\n";
}

}  // namespace pw::viz
