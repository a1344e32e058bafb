// Rules and traits of ops checked on generated graphs, one after another.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "pipeline/load.hpp"
#include "verify/rule_check.hpp"

namespace pw {

struct VerifyRequest {
  std::vector<std::string> only;          ///< rules, families or groups; empty: all, and all traits
  std::vector<std::int64_t> ranks{2, 4};  ///< that rules with collectives are checked on
  std::string graph;                      ///< a file: the traits of the ops that it declares, too
};

/// Without those that only open recursive patterns. PW1420 where there is no such rule.
Result<std::vector<RuleId>> rules_to_verify(const RuleSet& rules,
                                            const std::vector<std::string>& only);
/// In the order of the rules, then traits; `done` is called with each when it is there.
Result<std::vector<RuleCheck>> verify_rules(
    const LoadedRules& rules, const VerifyRequest& request, const Log& log,
    const std::function<void(const RuleCheck&)>& done = [](const RuleCheck&) {});

/// One object on one line: rule, verdict, ulps, only_for, reason, by_dtype, graphs, samples, ranks,
/// guards.
[[nodiscard]] std::string rule_check_to_json(const RuleCheck& check);

}  // namespace pw
