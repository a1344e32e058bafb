#include "verify/graph_diff.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pw {
namespace {

constexpr std::size_t kMostLines = 60;

/// The pairing of the nodes and values of two graphs.
class Pairing {
 public:
  Pairing(const Graph& expected, const Graph& actual) : a_(expected), b_(actual) {
    pair_inputs();
    pair_forward();
    pair_backward();
  }

  std::map<NodeId, NodeId> nodes;     ///< first graph → second graph
  std::map<ValueId, ValueId> values;  ///< the same

  /// Returns true if a paired node reads what its partner reads.
  [[nodiscard]] bool same_operands(NodeId x, NodeId y) const {
    return same_operands(x, y, false) || (commutes(x) && same_operands(x, y, true));
  }

 private:
  /// The properties that two paired nodes share, and the operands as values of the second graph.
  using Key = std::pair<std::vector<std::uint32_t>, std::vector<ValueId>>;

  static std::vector<std::uint32_t> shape_of(const Graph& graph, NodeId n) {
    std::vector<std::uint32_t> key{graph.op(n).index, graph.attributes(n).index,
                                   static_cast<std::uint32_t>(graph.operand_count(n))};
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      key.push_back(graph.type(graph.result(n, i)).index);
    return key;
  }

  [[nodiscard]] bool commutes(NodeId x) const {
    return a_.op_of(x).traits.commutative && a_.operand_count(x) >= 2;
  }

  void pair_inputs() {
    for (ValueId x : a_.inputs())
      for (ValueId y : b_.inputs())
        if (a_.value_name(x) == b_.value_name(y) && a_.type(x) == b_.type(y)) values[x] = y;
  }

  void pair_nodes(NodeId x, NodeId y) {
    nodes[x] = y;
    taken_.insert(y);
    for (std::size_t i = 0; i < a_.result_count(x) && i < b_.result_count(y); ++i)
      values[a_.result(x, i)] = b_.result(y, i);
  }

  /// Pairs nodes that compute the same result, from the inputs forwards.
  void pair_forward() {
    std::map<Key, std::vector<NodeId>> by_key;
    std::vector<NodeId> order = b_.order();
    for (auto n = order.rbegin(); n != order.rend(); ++n)
      by_key[key_of(b_, *n, b_.operands(*n))].push_back(*n);
    for (NodeId x : a_.order()) {
      std::vector<ValueId> operands;
      for (ValueId operand : a_.operands(x)) {
        const auto known = values.find(operand);
        if (operand.valid() && known == values.end()) break;
        operands.push_back(operand.valid() ? known->second : ValueId());
      }
      if (operands.size() != a_.operand_count(x)) continue;
      const auto found = by_key.find(key_of(a_, x, std::move(operands)));
      if (found == by_key.end() || found->second.empty()) continue;
      pair_nodes(x, found->second.back());
      found->second.pop_back();
    }
  }

  static Key key_of(const Graph& graph, NodeId n, std::vector<ValueId> operands) {
    if (graph.op_of(n).traits.commutative && operands.size() >= 2 && operands[1] < operands[0])
      std::swap(operands[0], operands[1]);
    return {shape_of(graph, n), std::move(operands)};
  }

  /// Pairs nodes that are used alike although their operands are not paired yet.
  void pair_backward() {
    std::vector<std::pair<ValueId, ValueId>> work;
    for (std::size_t i = 0; i < a_.outputs().size() && i < b_.outputs().size(); ++i)
      work.emplace_back(a_.outputs()[i], b_.outputs()[i]);
    while (!work.empty()) {
      const auto [x, y] = work.back();
      work.pop_back();
      if (!x.valid() || !y.valid() || a_.is_input(x) || b_.is_input(y)) continue;
      const NodeId m = a_.producer(x), n = b_.producer(y);
      if (nodes.contains(m) || taken_.contains(n)) continue;
      if (shape_of(a_, m) != shape_of(b_, n) || a_.result_index(x) != b_.result_index(y)) continue;
      pair_nodes(m, n);
      for (std::size_t i = 0; i < a_.operand_count(m); ++i)
        work.emplace_back(a_.operand(m, i), b_.operand(n, i));
    }
  }

  [[nodiscard]] bool same_operands(NodeId x, NodeId y, bool swapped) const {
    for (std::size_t i = 0; i < a_.operand_count(x); ++i) {
      const std::size_t j = swapped && i < 2 ? 1 - i : i;
      const ValueId v = a_.operand(x, i);
      const auto known = values.find(v);
      const ValueId partner = known == values.end() ? ValueId() : known->second;
      if (v.valid() && known == values.end()) return false;
      if (partner != b_.operand(y, j)) return false;
    }
    return true;
  }

  const Graph& a_;
  const Graph& b_;
  std::set<NodeId> taken_;
};

class Listing {
 public:
  Listing(const Graph& expected, const Graph& actual)
      : a_(expected), b_(actual), pairing_(expected, actual) {
    for (const auto& [x, y] : pairing_.nodes) partner_[y] = x;
    find_neighbours();
  }

  std::string text() {
    inputs();
    nodes();
    outputs();
    return any_ ? trimmed() : "";
  }

 private:
  struct Line {
    char mark = ' ';
    std::string text;
    bool wanted = false;
  };

  [[nodiscard]] std::string name(ValueId v, bool first) const {
    if (!v.valid()) return "none";
    if (!first) return std::string(b_.value_name(v));
    const auto known = pairing_.values.find(v);
    return std::string(known == pairing_.values.end() ? a_.value_name(v)
                                                      : b_.value_name(known->second));
  }

  [[nodiscard]] std::string input_text(const Graph& graph, ValueId v) const {
    return fmt::format("in {}: {}", graph.value_name(v),
                       graph.context().types.print(graph.type(v)));
  }

  [[nodiscard]] std::string node_text(NodeId n, bool first) const {
    const Graph& graph = first ? a_ : b_;
    std::vector<std::string> results, operands;
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      results.push_back(fmt::format("{}: {}", name(graph.result(n, i), first),
                                    graph.context().types.print(graph.type(graph.result(n, i)))));
    for (ValueId operand : graph.operands(n)) operands.push_back(name(operand, first));
    return fmt::format("{}{}{}({}){}", fmt::join(results, ", "), results.empty() ? "" : " = ",
                       graph.op_of(n).name, fmt::join(operands, ", "),
                       graph.context().attributes.print(graph.attributes(n)));
  }

  void add(char mark, std::string text, bool wanted = false) {
    any_ = any_ || mark != ' ';
    lines_.push_back({mark, std::move(text), wanted || mark != ' '});
  }

  void inputs() {
    std::set<ValueId> paired;
    for (ValueId v : a_.inputs()) {
      const auto known = pairing_.values.find(v);
      if (known == pairing_.values.end()) add('-', input_text(a_, v));
      if (known != pairing_.values.end()) paired.insert(known->second);
    }
    for (ValueId v : b_.inputs()) {
      if (!paired.contains(v))
        add('+', input_text(b_, v));
      else
        add(' ', input_text(b_, v), near_.contains(v));
    }
  }

  /// Values that nodes with a difference read or make: the nodes that make or read those are shown.
  void find_neighbours() {
    const auto note = [&](const Graph& graph, NodeId n, bool first) {
      const auto value = [&](ValueId v) {
        if (!v.valid()) return;
        const auto known = pairing_.values.find(v);
        if (!first) near_.insert(v);
        if (first && known != pairing_.values.end()) near_.insert(known->second);
      };
      for (ValueId v : graph.operands(n)) value(v);
      for (std::size_t i = 0; i < graph.result_count(n); ++i) {
        const ValueId v = graph.result(n, i);
        const auto known = pairing_.values.find(v);
        value(v);
        if (!first) made_.insert(v);
        if (first && known != pairing_.values.end()) made_.insert(known->second);
      }
    };
    for (NodeId n : a_.order())
      if (!pairing_.nodes.contains(n)) note(a_, n, true);
    for (NodeId n : b_.order())
      if (!partner_.contains(n)) note(b_, n, false);
    for (const auto& [x, y] : pairing_.nodes) {
      if (pairing_.same_operands(x, y)) continue;
      note(a_, x, true);
      note(b_, y, false);
    }
  }

  [[nodiscard]] bool is_near(NodeId n) const {
    for (std::size_t i = 0; i < b_.result_count(n); ++i)
      if (near_.contains(b_.result(n, i))) return true;
    const std::vector<ValueId> operands = b_.operands(n);
    return std::any_of(operands.begin(), operands.end(),
                       [&](ValueId v) { return made_.contains(v); });
  }

  void nodes() {
    std::vector<NodeId> expected = a_.order();
    auto next = expected.begin();
    for (NodeId n : b_.order()) {
      const auto known = partner_.find(n);
      if (known == partner_.end()) {
        add('+', node_text(n, false));
        continue;
      }
      // Nodes of the first graph only are placed next to their neighbours.
      for (; next != expected.end() && *next != known->second; ++next) only_expected(*next);
      const bool same = pairing_.same_operands(known->second, n);
      if (!same) add('-', node_text(known->second, true));
      add(same ? ' ' : '+', node_text(n, false), is_near(n));
      shown_.insert(known->second);
    }
    for (; next != expected.end(); ++next) only_expected(*next);
    sort_runs();
  }

  /// Within a run of differences, the first graph's lines precede the second's.
  void sort_runs() {
    const auto differs = [](const Line& line) { return line.mark != ' '; };
    for (auto from = lines_.begin(); from != lines_.end();) {
      from = std::find_if(from, lines_.end(), differs);
      const auto to = std::find_if_not(from, lines_.end(), differs);
      std::stable_partition(from, to, [](const Line& line) { return line.mark == '-'; });
      from = to;
    }
  }

  void only_expected(NodeId n) {
    if (!pairing_.nodes.contains(n) && shown_.insert(n).second) add('-', node_text(n, true));
  }

  void outputs() {
    const auto list = [&](const Graph& graph, bool first) {
      std::vector<std::string> names;
      for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
        const std::string value(name(graph.outputs()[i], first));
        names.push_back(
            i < graph.returned_count()
                ? value
                : fmt::format("write {} = {}",
                              name(graph.written_inputs()[i - graph.returned_count()], first),
                              value));
      }
      return fmt::format("out {}", fmt::join(names, ", "));
    };
    const auto& written = a_.written_inputs();
    bool same =
        a_.outputs().size() == b_.outputs().size() && written.size() == b_.written_inputs().size();
    for (std::size_t i = 0; same && i < written.size(); ++i) {
      const auto known = pairing_.values.find(written[i]);
      same = known != pairing_.values.end() && known->second == b_.written_inputs()[i];
    }
    for (std::size_t i = 0; same && i < a_.outputs().size(); ++i) {
      const auto known = pairing_.values.find(a_.outputs()[i]);
      same = known != pairing_.values.end() && known->second == b_.outputs()[i];
    }
    if (!same) add('-', list(a_, true));
    add(same ? ' ' : '+', list(b_, false), true);
  }

  /// Prints the selected lines and one `…` for each gap.
  std::string trimmed() const {
    std::string out;
    bool gap = false;
    std::size_t shown = 0;
    for (const Line& line : lines_) {
      if (!line.wanted) {
        gap = true;
        continue;
      }
      if (++shown > kMostLines) break;
      if (gap) out += "  …\n";
      gap = false;
      out += fmt::format("{} {}\n", line.mark, line.text);
    }
    const auto all = static_cast<std::size_t>(
        std::count_if(lines_.begin(), lines_.end(), [](const Line& l) { return l.wanted; }));
    return all > kMostLines ? out + fmt::format("  … and {} more lines\n", all - kMostLines) : out;
  }

  const Graph& a_;
  const Graph& b_;
  Pairing pairing_;
  std::map<NodeId, NodeId> partner_;  // second graph → first graph
  std::set<ValueId> near_;            // of the second graph: read or computed by nodes that differ
  std::set<ValueId> made_;            // those that they compute
  std::set<NodeId> shown_;            // of the first graph
  std::vector<Line> lines_;
  bool any_ = false;
};

}  // namespace

std::string graph_diff(const Graph& expected, const Graph& actual) {
  return Listing(expected, actual).text();
}

}  // namespace pw
