// Prints both graphs in a canonical form that numbers each value by the expression that computes
// it. Equal texts mean equal graphs.
#include "verify/isomorphism.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "verify/graph_diff.hpp"

namespace pw {
namespace {

/// Numbers for expressions, shared by both graphs, so that equal expressions get equal names.
class Numbering {
 public:
  std::string name(const std::string& expression) {
    const auto [at, fresh] = numbers_.emplace(expression, numbers_.size());
    return fmt::format("v{}", at->second);
  }

 private:
  std::map<std::string, std::size_t> numbers_;
};

struct Lines {
  std::vector<std::string> text;
};

class Canonical {
 public:
  Canonical(const Graph& graph, Numbering& numbering) : graph_(graph), numbering_(numbering) {}

  Lines lines() {
    Lines lines;
    std::vector<std::string> inputs, outputs;
    for (ValueId input : graph_.inputs()) {
      names_[input] = fmt::format("{}", graph_.value_name(input));
      inputs.push_back(fmt::format("in {}: {}", graph_.value_name(input),
                                   graph_.context().types.print(graph_.type(input))));
    }
    std::sort(inputs.begin(), inputs.end());
    lines.text = std::move(inputs);
    const std::vector<bool> live = live_nodes();
    for (NodeId node : graph_.order()) {
      if (live[node.index]) lines.text.push_back(line(node));
    }
    const std::vector<ValueId>& written = graph_.written_inputs();
    for (std::size_t i = 0; i < graph_.returned_count(); ++i)
      outputs.push_back(names_[graph_.outputs()[i]]);
    for (std::size_t i = 0; i < written.size(); ++i)
      lines.text.push_back(fmt::format("write {} = {}", graph_.value_name(written[i]),
                                       names_[graph_.outputs()[graph_.returned_count() + i]]));
    lines.text.push_back(fmt::format("out {}", fmt::join(outputs, ", ")));
    return lines;
  }

 private:
  [[nodiscard]] std::vector<bool> live_nodes() const {
    std::vector<bool> live(graph_.node_bound(), false);
    const auto mark = [&](ValueId value) {
      if (value.valid() && !graph_.is_input(value)) live[graph_.producer(value).index] = true;
    };
    for (ValueId output : graph_.outputs()) mark(output);
    const std::vector<NodeId> order = graph_.order();
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
      if (graph_.op_of(*node).traits.effect) live[node->index] = true;
      if (!live[node->index]) continue;
      for (ValueId operand : graph_.operands(*node)) mark(operand);
    }
    return live;
  }

  std::string line(NodeId node) {
    std::vector<std::string> operands;
    for (ValueId operand : graph_.operands(node))
      operands.push_back(operand.valid() ? names_[operand] : "none");
    if (graph_.op_of(node).traits.commutative && operands.size() >= 2 && operands[1] < operands[0])
      std::swap(operands[0], operands[1]);
    const std::string call =
        fmt::format("{}({}){}", graph_.op_of(node).name, fmt::join(operands, ", "),
                    graph_.context().attributes.print(graph_.attributes(node)));
    std::vector<std::string> results;
    for (std::size_t r = 0; r < graph_.result_count(node); ++r) {
      const ValueId result = graph_.result(node, r);
      const std::string type = graph_.context().types.print(graph_.type(result));
      names_[result] = numbering_.name(fmt::format("{} {} {}", call, r, type));
      results.push_back(fmt::format("{}: {}", names_[result], type));
    }
    return fmt::format("{} = {}", fmt::join(results, ", "), call);
  }

  const Graph& graph_;
  Numbering& numbering_;
  std::map<ValueId, std::string> names_;
};

/// Compares the lines as sorted lists with repetitions, so the order of independent nodes is
/// ignored.
bool same_lines(Lines a, Lines b) {
  std::sort(a.text.begin(), a.text.end());
  std::sort(b.text.begin(), b.text.end());
  return a.text == b.text;
}

}  // namespace

std::string graph_difference(const Graph& expected, const Graph& actual) {
  Numbering numbering;
  const Lines a = Canonical(expected, numbering).lines(), b = Canonical(actual, numbering).lines();
  if (same_lines(a, b)) return "";
  Graph x = expected.compact(), y = actual.compact();
  x.erase_dead();
  y.erase_dead();
  const std::string text = graph_diff(x, y);
  return text.empty()
             ? "  the nodes are equal, but one graph computes a value twice that the other shares\n"
             : text;
}

}  // namespace pw
