// Whether a match may be replaced where it stands: nothing consumed escapes, the replacement can be
// ordered between what it reads and who reads it, and no barrier is crossed. Read-only; the matcher
// and the applier both ask here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rewriter/layout.hpp"
#include "rewriter/matcher.hpp"

namespace pw {

/// What is known of a graph's symbols where the conditions of a match hold as well.
Facts with_conditions(const Graph& graph, const std::vector<Condition>& conditions);

/// A value that is consumed but needed outside the match.
struct Escape {
  PatternValueId value;
  ValueId graph_value;
  std::vector<NodeId> users;  ///< outside the match, in order
  bool output = false;        ///< of the graph
};
std::optional<Escape> find_escape(const Graph& graph, const RuleLayout& layout,
                                  const std::vector<NodeId>& nodes);
std::string describe(const Graph& graph, const RuleLayout& layout, const Escape& escape);

/// The values the replacement reads, and the values it defines anew.
struct Boundary {
  std::vector<ValueId> reads, writes;
};
Boundary boundary_of(const Graph& graph, const RuleLayout& layout, const std::vector<NodeId>& nodes,
                     const Env& env);
/// A path from a user of a write to the producer of a read, outside the match: the replacement
/// would read its own result.
std::vector<NodeId> find_bad_path(const Graph& graph, const RuleLayout& layout,
                                  const std::vector<NodeId>& nodes, const Boundary& boundary);
std::string describe_path(const Graph& graph, const std::vector<NodeId>& path);

/// An op that may not be reordered freely: it has an effect, or writes an operand.
bool is_barrier(const Op& op);
bool has_barriers(const Graph& graph);
/// A barrier between the first and the last consumed node that the match cannot be moved across;
/// nothing if there is none.
std::optional<NodeId> find_barrier(const Graph& graph, const RuleLayout& layout,
                                   const std::vector<NodeId>& nodes, const Boundary& boundary);

/// The graph's value that a pattern node's result stands for.
ValueId result_value(const Graph& graph, const Rule& rule, const std::vector<NodeId>& nodes,
                     PatternValueId value);
/// The matched nodes that are not given, in order of the graph.
std::vector<NodeId> own_nodes(const Graph& graph, const RuleLayout& layout,
                              const std::vector<NodeId>& nodes);

}  // namespace pw
