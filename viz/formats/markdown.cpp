#include "viz/formats/markdown.hpp"

#include <algorithm>

#include "viz/label.hpp"

namespace pw::viz {
namespace {

std::string row(const UnionGraph& union_graph, const Box& box) {
  const std::string mark = std::string("| ") + glyph(box.mark) + " | ";
  if (box.kind == BoxKind::whole) {
    std::string words;
    for (const std::string& line : box.lines) words += (words.empty() ? "" : ", ") + line;
    return mark + markdown_text(words) + " | | | |\n";
  }
  const UnionNode& node = union_graph.nodes[box.node];
  const Graph& graph = union_graph.graph_of(node);
  std::string names, types, reads;
  for (std::size_t r = 0; r < graph.result_count(node.id); ++r) {
    const ValueId v = graph.result(node.id, r);
    names += (r == 0 ? "" : ", ") + std::string(graph.value_name(v));
    types += (r == 0 ? "" : ", ") + graph.context().types.print(graph.type(v));
  }
  for (std::size_t i = 0; i < graph.operand_count(node.id); ++i)
    reads += (i == 0 ? "" : ", ") + operand_text(graph, graph.operand(node.id, i));
  return mark + markdown_text(names) + " | " + markdown_text(graph.op_of(node.id).name) +
         markdown_text(graph.context().attributes.print(graph.attributes(node.id))) + " | " +
         markdown_text(reads) + " | " + markdown_text(types) + " |\n";
}

}  // namespace

std::string markdown_text(std::string_view text) {
  std::string out;
  for (const char c : clean(text)) {
    switch (c) {
      case '\n': out += ' '; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '|':
      case '\\':
      case '`':
      case '*':
      case '_':
      case '[':
      case ']':
      case '#':
      case '~':
      case '!': out += '\\'; [[fallthrough]];
      default: out += c;
    }
  }
  return out;
}

std::string to_markdown(const UnionGraph& graph, const Scene& scene) {
  std::string out =
      "# " + markdown_text(scene.title) + "\n\n" + markdown_text(scene.caption) + ".\n";
  if (graph.versions.size() > 1) out += "\n+ added, − removed, ~ changed.\n";
  std::vector<std::uint32_t> around;  // open clusters
  bool open = false;
  for (const Box& box : scene.boxes) {
    if (box.kind == BoxKind::input || box.kind == BoxKind::output) continue;
    const std::vector<std::uint32_t> now = clusters_around(scene, box.cluster);
    if (!open || now != around) {
      const auto common = static_cast<std::size_t>(
          std::mismatch(now.begin(), now.end(), around.begin(), around.end()).first - now.begin());
      // Repeats the title of a cluster after an inner cluster.
      for (std::size_t i = std::min(common, now.empty() ? 0 : now.size() - 1); i < now.size(); ++i)
        out += "\n" + std::string(std::min<std::size_t>(i + 2, 6), '#') + " " +
               markdown_text(scene.clusters[now[i]].title) + "\n";
      around = now;
      open = true;
      out += "\n| | results | op | reads | types |\n|---|---|---|---|---|\n";
    }
    out += row(graph, box);
  }
  const Graph& last = graph.versions.back()->graph;
  out += "\n## Inputs and outputs\n\n| | name | type |\n|---|---|---|\n";
  for (const ValueId v : last.inputs())
    if (last.input_kind(v) == InputKind::input)
      out += "| in | " + markdown_text(last.value_name(v)) + " | " +
             markdown_text(last.context().types.print(last.type(v))) + " |\n";
  for (std::size_t i = 0; i < last.outputs().size(); ++i) {
    const ValueId v = last.outputs()[i];
    const bool written = i >= last.returned_count();
    const std::string what =
        written
            ? "write " +
                  markdown_text(last.value_name(last.written_inputs()[i - last.returned_count()]))
            : "out";
    out += "| " + what + " | " + markdown_text(last.value_name(v)) + " | " +
           markdown_text(last.context().types.print(last.type(v))) + " |\n";
  }
  return out;
}

}  // namespace pw::viz
