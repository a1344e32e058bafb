// Superposition of two patterns: the smallest graphs in which a node that both rules replace is
// one. These are the critical pairs of the two rules (Knuth & Bendix 1970), on graphs instead of
// terms.
#pragma once

#include <optional>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

struct Superposition {
  Rule pattern;  ///< the nodes of both, in topological order; names of the second end in `'`
  std::vector<PatternNodeId> of_a, of_b;  ///< by PatternNodeId of each rule
  std::vector<PatternValueId> visible;    ///< results that neither consumes
  PatternNodeId shared_a, shared_b;       ///< the node that was identified first
};

struct SuperposeLimits {
  std::size_t ways = 16;
  std::size_t steps = 500'000;  ///< nodes of both rules, for each choice that is followed
};
struct Superpositions {
  std::vector<Superposition> ways;
  bool complete = true;  ///< false: the steps ran out
  std::size_t steps = 0;
};
/// Returns each superposition once, as far as the limits allow. Both rules must be plain. The
/// superposition of a rule with itself in all its nodes is omitted.
Superpositions superpose(const RuleSet& rules, RuleId a, RuleId b, const SuperposeLimits& limits);

}  // namespace pw
