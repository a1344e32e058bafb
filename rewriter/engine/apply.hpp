// Replaces one match: the engine's inner step. Reports what the driver needs afterwards.
#pragma once

#include <vector>

#include "rewriter/matcher/matcher.hpp"
#include "rewriter/strategies/journal.hpp"
#include "rewriter/strategies/layout.hpp"

namespace pw {

struct Applied {
  MatchEvent event;
  bool changed = true;          ///< false: the result is what was there; the graph is as before
  std::vector<NodeId> touched;  ///< new nodes, nodes with new operands, producers of values whose
                                ///< users changed; sorted
};

/// Applies a match. Fails without changing the graph if the match is stale (N10), escapes (N08),
/// would make a cycle (N13), crosses a barrier (N14), or if an output's type would change (N05,
/// N06). `barriers`: the graph may hold ops with effects.
Result<Applied> apply(Graph& graph, const RuleLayout& layout, const Match& match, bool barriers);

/// Outcome that apply() would have. `forbidden` concerns this assignment of nodes to the pattern;
/// another assignment may be allowed. `barred` (N14) concerns their place in the order.
enum class Trial : std::uint8_t { forbidden, barred, unchanged, changed };
/// Returns the outcome of apply() without changing the graph.
Trial try_apply(Graph& graph, const RuleLayout& layout, const Match& match, bool barriers);

/// Returns true if apply() would change the graph; false if the graph already holds the rule's
/// result. The graph stays unchanged. Fails if apply() fails.
Result<bool> would_change(Graph& graph, const RuleLayout& layout, const Match& match,
                          bool barriers);

/// Returns the node with the smallest label. Dead nodes keep their last label.
NodeId first_of(const Graph& graph, const std::vector<NodeId>& nodes);
/// Erases those of `nodes` that nothing needs, and everything that becomes unneeded. Returns the
/// erased nodes in order of erasure.
std::vector<NodeId> erase_unneeded(Graph& graph, std::vector<NodeId> nodes);
/// Returns true if nothing reads the node and it may be erased.
bool is_unneeded(const Graph& graph, NodeId node);

}  // namespace pw
