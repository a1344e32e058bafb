#include "viz/outline.hpp"

#include <algorithm>
#include <map>

#include "viz/label.hpp"

namespace pw::viz {
namespace {

constexpr std::size_t kMostColumn = 72;

const char* ansi(Mark mark) {
  switch (mark) {
    case Mark::plain: return "";
    case Mark::added: return "\x1b[34m";
    case Mark::removed: return "\x1b[31m";
    case Mark::changed: return "\x1b[33m";
  }
  return "";
}

std::string pad(std::string text, std::size_t width) {
  const std::size_t now = count_characters(text);
  if (now < width) text.append(width - now, ' ');
  return text;
}

std::string call_of(const Graph& graph, NodeId n) {
  std::string text;
  for (std::size_t r = 0; r < graph.result_count(n); ++r)
    text += (r == 0 ? "" : ", ") + std::string(graph.value_name(graph.result(n, r)));
  text += (text.empty() ? "" : " = ") + graph.op_of(n).name + "(";
  for (std::size_t i = 0; i < graph.operand_count(n); ++i)
    text += (i == 0 ? "" : ", ") + operand_text(graph, graph.operand(n, i));
  return clean(text + ")" + graph.context().attributes.print(graph.attributes(n)));
}

std::string types_of(const Graph& graph, NodeId n) {
  std::string text;
  for (std::size_t r = 0; r < graph.result_count(n); ++r)
    text += (r == 0 ? "" : ", ") + graph.context().types.print(graph.type(graph.result(n, r)));
  return text;
}

class Outliner {
 public:
  Outliner(const UnionGraph& graph, const Scene& scene, bool color)
      : graph_(graph), scene_(scene), color_(color) {}

  std::string run() {
    heading();
    std::vector<std::uint32_t> around;  // open clusters
    for (const Box& box : scene_.boxes) {
      if (box.kind == BoxKind::input || box.kind == BoxKind::output) continue;
      const std::vector<std::uint32_t> now = clusters_around(scene_, box.cluster);
      const auto common = static_cast<std::size_t>(
          std::mismatch(now.begin(), now.end(), around.begin(), around.end()).first - now.begin());
      for (std::size_t i = common; i < now.size(); ++i)
        out_ += std::string(2 * i, ' ') + styled(scene_.clusters[now[i]].title, "\x1b[1m") + "\n";
      around = now;
      line(box, around.size());
    }
    outputs();
    return std::move(out_);
  }

 private:
  std::string styled(const std::string& text, const char* style) const {
    return color_ && *style != '\0' ? style + text + "\x1b[0m" : text;
  }

  void heading() {
    const Graph& graph = graph_.versions.back()->graph;
    std::map<InputKind, std::size_t> kinds;
    for (const ValueId v : graph.inputs()) ++kinds[graph.input_kind(v)];
    out_ += styled(scene_.title, "\x1b[1m") + ": " + grouped_digits(graph.node_count()) +
            (graph.node_count() == 1 ? " node" : " nodes");
    for (const auto& [kind, count] : kinds)
      out_ +=
          ", " + std::to_string(count) + " " + std::string(name(kind)) + (count == 1 ? "" : "s");
    out_ += ", " + std::to_string(graph.outputs().size()) + " output" +
            (graph.outputs().size() == 1 ? "" : "s") + "\n";
    for (const auto& [symbol, fact] : graph.facts.symbols)
      out_ += "symbol " + clean(symbol) + " " + std::to_string(fact.min) + ".." +
              std::to_string(fact.max) + (fact.role.empty() ? "" : " (" + clean(fact.role) + ")") +
              "\n";
    out_ += scene_.caption + "\n";
    for (const ValueId v : graph.inputs())
      if (graph.input_kind(v) == InputKind::input)
        out_ += "  in  " + clean(graph.value_name(v)) + ": " +
                graph.context().types.print(graph.type(v)) + "\n";
  }

  void line(const Box& box, std::size_t depth) {
    const std::string mark = *glyph(box.mark) == '\0' ? " " : glyph(box.mark);
    std::string text = std::string(depth == 0 ? 1 : 2 * depth, ' ') + mark + " ";
    if (box.kind == BoxKind::whole) {
      for (const std::string& words : box.lines) text += words + "  ";
    } else {
      const UnionNode& node = graph_.nodes[box.node];
      const Graph& graph = graph_.graph_of(node);
      text = pad(text + shorten(call_of(graph, node.id), kMostColumn * 2), kMostColumn) + "  " +
             types_of(graph, node.id);
    }
    out_ += styled(text, ansi(box.mark)) + "\n";
  }

  void outputs() {
    const Graph& graph = graph_.versions.back()->graph;
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      const ValueId v = graph.outputs()[i];
      const std::string written =
          i < graph.returned_count()
              ? ""
              : "write " +
                    clean(graph.value_name(graph.written_inputs()[i - graph.returned_count()])) +
                    " = ";
      out_ += "  " + (written.empty() ? "out " : written) + clean(graph.value_name(v)) + ": " +
              graph.context().types.print(graph.type(v)) + "\n";
    }
  }

  const UnionGraph& graph_;
  const Scene& scene_;
  bool color_;
  std::string out_;
};

}  // namespace

std::string to_outline(const UnionGraph& graph, const Scene& scene, bool color) {
  return Outliner(graph, scene, color).run();
}

}  // namespace pw::viz
