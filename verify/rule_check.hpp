// Before ≡ after for a rule, on graphs made from its own pattern, at the boundary values of its
// guards too: the reference must agree closely on every rank, and a run in the declared dtypes must
// be as good after as before. A rule that no graph could be made for fails: it is not skipped.
#pragma once

#include <string>
#include <vector>

#include "verify/instance.hpp"
#include "verify/numeric.hpp"

namespace pw {

struct RuleCheckOptions {
  InstanceOptions instances;
  std::vector<std::int64_t> tokens = {1, 7};
  double exact = 1e-9;  ///< largest difference of the reference runs, relative to the largest value
  /// Rules with collectives on either side are checked on each of these numbers of ranks, all
  /// others on one rank.
  std::vector<std::int64_t> ranks = {2, 4};
};

struct RuleCheck {
  std::string rule;
  std::size_t instances = 0, runs = 0;
  std::vector<std::int64_t> ranks;  ///< on which it was checked
  /// Of the guards' boundary values: held at, refused at, and those that no graph could be made
  /// for, as "d = 4096".
  std::size_t held = 0, refused = 0;
  std::vector<std::string> unreached;
  std::vector<std::string> failures;  ///< a sentence each, with the graph it was seen on
  /// Graphs were made, but none runs here: which op has no meaning on the host. Says nothing about
  /// the rule.
  std::string cannot_run;
  [[nodiscard]] bool passed() const { return failures.empty() && cannot_run.empty(); }
};

RuleCheck check_rule(const RuleSet& rules, RuleId rule, const Env& params,
                     const RuleCheckOptions& options = {});
/// Every rule, in the order of the rule set.
std::vector<RuleCheck> check_rules(const RuleSet& rules, const Env& params,
                                   const RuleCheckOptions& options = {});

}  // namespace pw
