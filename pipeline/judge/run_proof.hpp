// Proof results of a run's rewrites, as data.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "verify/rule_verdict.hpp"

namespace pw {

struct RunProof {
  /// The results for the rewrites by one rule.
  struct OfRule {
    std::string rule;
    std::size_t rewrites = 0;
    bool by_rule = false;         ///< the rule itself is proved
    std::size_t on_the_spot = 0;  ///< otherwise: rewrites proved separately
    /// The worst of the proofs; unknown if a rewrite is unproved.
    RuleVerdict verdict = RuleVerdict::unknown;
    std::string reason;  ///< why the rule is not proved
    [[nodiscard]] std::size_t left() const { return by_rule ? 0 : rewrites - on_the_spot; }
  };
  /// An unproved rewrite.
  struct Left {
    std::string rule, pass, node;
    std::string reason;  ///< open obligation
  };
  std::vector<OfRule> rules;  ///< in the order of the rules
  std::vector<Left> left;     ///< in the order of the run
  [[nodiscard]] std::size_t rewrites() const;
  [[nodiscard]] std::size_t by_rule() const;
  [[nodiscard]] std::size_t on_the_spot() const;
  /// Prints "44 rewrites: 40 by proved rules, 1 proved individually, 3 not proved".
  [[nodiscard]] std::string print() const;
};

}  // namespace pw
