// Reasons why a match that was seen is not applied.
#pragma once

#include <optional>
#include <string>

#include "rewriter/explain/match_records.hpp"

namespace pw {

/// Returns why the match cannot be applied at its place; nothing if it can. Only the places of
/// nodes may change in the graph. `barriers`: it may hold ops with effects. `front`: Reason::at.
std::optional<Reason> refusal_of(Graph& scratch, const RuleLayout& layout, const Match& match,
                                 bool barriers, std::size_t front);
/// Returns why a strategy with the rule left a match that could be applied, after `step` rewrites
/// of the pass. `late`: the match appeared while the strategy ran.
std::optional<Reason> reason_left(const Strategy& leaf, StopReason stop, const SeenMatch& seen,
                                  const std::string& pass, std::size_t step, bool late);

/// Returns the reason of a match that a rewrite took: its first node that the rewrite matched, else
/// one that became unneeded. `together`: the strategy has both rules; `above`: the rewrite's rule
/// is declared over the match's.
Reason reason_taken(const SeenMatch& seen, const RewriteStep& step, const MatchEvent& event,
                    bool together, bool above);
/// Returns the reason of a match that remains when a `repeat` ends.
Reason reason_out_of_rounds(const SeenMatch& seen, const std::string& pass);
/// Returns the reason of a match that no pass took up. `left_out`: a pass that was skipped.
Reason reason_unreached(const SeenMatch& seen, const std::string& left_out);

}  // namespace pw
