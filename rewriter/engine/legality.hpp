// Legality of a match: no consumed value escapes, the matched nodes are convex (no path leads from
// an output back to an operand of the right side), and no barrier is crossed. Read-only; the
// matcher and the applier share it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rewriter/matcher/matcher.hpp"
#include "rewriter/strategies/layout.hpp"

namespace pw {

/// The facts of a graph's symbols under the conditions of a match.
Facts with_conditions(const Graph& graph, const std::vector<Condition>& conditions);

/// A value that is consumed but needed outside the match.
struct Escape {
  PatternValueId value;
  ValueId graph_value;
  NodeId producer;
  std::vector<NodeId> users;  ///< outside the match, in order
  bool output = false;        ///< of the graph
};
std::optional<Escape> find_escape(const Graph& graph, const RuleLayout& layout, const Match& match);
std::string describe(const Graph& graph, const RuleLayout& layout, const Escape& escape);

/// The values the replacement reads, and the values it defines anew: those of a list one after
/// another, in the order of Rule::outputs.
struct Boundary {
  std::vector<ValueId> reads, writes;
};
Boundary boundary_of(const Graph& graph, const RuleLayout& layout, const Match& match);
/// A path from a user of a write to the producer of a read, outside the match: the replacement
/// would read its own result.
std::vector<NodeId> find_bad_path(const Graph& graph, const RuleLayout& layout, const Match& match,
                                  const Boundary& boundary);
/// The same for a rule whose nodes are all matched once.
std::vector<NodeId> find_bad_path(const Graph& graph, const RuleLayout& layout,
                                  const std::vector<NodeId>& nodes, const Boundary& boundary);
std::string describe_path(const Graph& graph, const std::vector<NodeId>& path);

/// An op that may not be reordered freely: it has an effect, or writes an operand.
bool is_barrier(const Op& op);
bool has_barriers(const Graph& graph);
/// A barrier between the first and the last consumed node that the match cannot be moved across;
/// nothing if there is none.
std::optional<NodeId> find_barrier(const Graph& graph, const RuleLayout& layout, const Match& match,
                                   const Boundary& boundary);
/// The same for a rule whose nodes are all matched once.
std::optional<NodeId> find_barrier(const Graph& graph, const RuleLayout& layout,
                                   const std::vector<NodeId>& nodes, const Boundary& boundary);

/// The graph's values that a pattern node's result stands for: one, or one for each member, or all
/// the results that a list takes.
std::vector<ValueId> result_values(const Graph& graph, const Rule& rule, const Match& match,
                                   PatternValueId value);
/// The matched nodes that are replaced, each once, in order of the graph.
std::vector<NodeId> own_nodes(const Graph& graph, const RuleLayout& layout, const Match& match);
/// The same for a rule whose nodes are all matched once.
std::vector<NodeId> own_nodes(const Graph& graph, const RuleLayout& layout,
                              const std::vector<NodeId>& nodes);
/// All matched nodes: those matched once in pattern order, then the members'.
std::vector<NodeId> all_nodes(const Match& match);

/// Nodes that are looked up often.
class NodeSet {
 public:
  explicit NodeSet(std::vector<NodeId> nodes);
  [[nodiscard]] bool contains(NodeId node) const;

 private:
  std::vector<NodeId> nodes_;  // sorted
};

}  // namespace pw
