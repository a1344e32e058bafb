// What is proved of the rewrites of a run, as data.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "verify/rule_verdict.hpp"

namespace pw {

struct RunProof {
  /// Of the rewrites by one rule.
  struct OfRule {
    std::string rule;
    std::size_t rewrites = 0;
    bool by_rule = false;         ///< the rule itself is proved
    std::size_t on_the_spot = 0;  ///< else: rewrites that are proved by themselves
    /// The worst of what is proved; unknown where a rewrite is left.
    RuleVerdict verdict = RuleVerdict::unknown;
    std::string reason;  ///< why the rule is not proved
    [[nodiscard]] std::size_t left() const { return by_rule ? 0 : rewrites - on_the_spot; }
  };
  /// A rewrite that is not proved.
  struct Left {
    std::string rule, pass, node;
    std::string reason;  ///< what is left to show
  };
  std::vector<OfRule> rules;  ///< in the order of the rules
  std::vector<Left> left;     ///< in the order of the run
  [[nodiscard]] std::size_t rewrites() const;
  [[nodiscard]] std::size_t by_rule() const;
  [[nodiscard]] std::size_t on_the_spot() const;
  /// "44 rewrites: 40 by proved rules, 1 proved on the spot, 3 not proved"
  [[nodiscard]] std::string print() const;
};

}  // namespace pw
