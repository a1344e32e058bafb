// Replaces one match: the engine's inner step, with what the driver needs to know afterwards.
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

/// Fails, with the graph as it was, when the match is stale (N10), escapes (N08), would make a
/// cycle (N13), crosses a barrier (N14), or when an output's type would change (N05, N06).
/// `barriers`: the graph may hold ops with effects.
Result<Applied> apply(Graph& graph, const RuleLayout& layout, const Match& match, bool barriers);

/// The outcome that apply() would have. `forbidden` concerns this assignment of the nodes to the
/// pattern, and another may be allowed; `barred` (N14) concerns their place in the order.
enum class Trial : std::uint8_t { forbidden, barred, unchanged, changed };
/// The graph is unchanged afterwards.
Trial try_apply(Graph& graph, const RuleLayout& layout, const Match& match, bool barriers);

/// Whether apply() would change the graph, which is left as it is; false: what the rule makes is
/// there already. Fails where apply() fails.
Result<bool> would_change(Graph& graph, const RuleLayout& layout, const Match& match,
                          bool barriers);

/// That whose label is the smallest. Dead nodes keep the one they had.
NodeId first_of(const Graph& graph, const std::vector<NodeId>& nodes);
/// Erases those of `nodes` that nothing needs, and what that leaves unneeded; the erased, in order
/// of erasure.
std::vector<NodeId> erase_unneeded(Graph& graph, std::vector<NodeId> nodes);
/// Whether nothing reads the node and it may go.
bool is_unneeded(const Graph& graph, NodeId node);

}  // namespace pw
