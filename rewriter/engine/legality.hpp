// Legality of a match: no consumed value escapes, the matched nodes are convex (no path leads from
// an output back to an operand of the right side), and no barrier is crossed. Read-only; shared by
// the matcher and the applier.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rewriter/matcher/matcher.hpp"
#include "rewriter/strategies/layout.hpp"

namespace pw {

/// Returns the facts of a graph's symbols under the conditions of a match.
Facts with_conditions(const Graph& graph, const std::vector<Condition>& conditions);

/// A consumed value that is needed outside the match.
struct Escape {
  PatternValueId value;
  ValueId graph_value;
  NodeId producer;
  std::vector<NodeId> users;  ///< outside the match, in order
  bool output = false;        ///< of the graph
};
std::optional<Escape> find_escape(const Graph& graph, const RuleLayout& layout, const Match& match);
std::string describe(const Graph& graph, const RuleLayout& layout, const Escape& escape);

/// Values that the replacement reads, and values that it redefines: those of a list
/// consecutively, in the order of Rule::outputs.
struct Boundary {
  std::vector<ValueId> reads, writes;
};
Boundary boundary_of(const Graph& graph, const RuleLayout& layout, const Match& match);
/// Returns a path from a user of a write to the producer of a read, outside the match: the
/// replacement would read its own result. Empty if there is none.
std::vector<NodeId> find_bad_path(const Graph& graph, const RuleLayout& layout, const Match& match,
                                  const Boundary& boundary);
/// Does the same for a rule whose nodes are all matched once.
std::vector<NodeId> find_bad_path(const Graph& graph, const RuleLayout& layout,
                                  const std::vector<NodeId>& nodes, const Boundary& boundary);
std::string describe_path(const Graph& graph, const std::vector<NodeId>& path);

/// Returns true for an op that may not be reordered freely: it has an effect, or writes an operand.
bool is_barrier(const Op& op);
bool has_barriers(const Graph& graph);
/// Returns a barrier between the first and the last consumed node that the match cannot be moved
/// across; nothing if there is none.
std::optional<NodeId> find_barrier(const Graph& graph, const RuleLayout& layout, const Match& match,
                                   const Boundary& boundary);
/// Does the same for a rule whose nodes are all matched once.
std::optional<NodeId> find_barrier(const Graph& graph, const RuleLayout& layout,
                                   const std::vector<NodeId>& nodes, const Boundary& boundary);

/// Returns the graph's values for a pattern node's result: one value, one for each member, or all
/// the results that a list takes.
std::vector<ValueId> result_values(const Graph& graph, const Rule& rule, const Match& match,
                                   PatternValueId value);
/// Returns the matched nodes that are replaced, each once, in the order of the graph.
std::vector<NodeId> own_nodes(const Graph& graph, const RuleLayout& layout, const Match& match);
/// Does the same for a rule whose nodes are all matched once.
std::vector<NodeId> own_nodes(const Graph& graph, const RuleLayout& layout,
                              const std::vector<NodeId>& nodes);
/// Returns all matched nodes: those matched once in pattern order, then the members'.
std::vector<NodeId> all_nodes(const Match& match);

/// Set of nodes for frequent lookups.
class NodeSet {
 public:
  explicit NodeSet(std::vector<NodeId> nodes);
  [[nodiscard]] bool contains(NodeId node) const;

 private:
  std::vector<NodeId> nodes_;  // sorted
};

}  // namespace pw
