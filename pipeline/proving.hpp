// Rules proved for all sizes and dtypes; where there is no proof, samples look for a graph on which
// the rule is wrong.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/load.hpp"
#include "proof/prove.hpp"
#include "verify/rule_check.hpp"

namespace pw {

struct ProveRequest {
  std::vector<std::string> only;  ///< rules, families or groups; empty: all
  bool samples = true;            ///< refute by samples, and find how far rounding goes
  bool keep = true;               ///< proofs in the user's folder, and take those that are there
};

struct RuleProof {
  proof::Proof proof;
  RuleVerdict verdict = RuleVerdict::not_proved;
  KnownBy known = KnownBy::proof;
  double ulps = 0;     ///< seen by samples, of `rounds`
  Specials specials;   ///< of differs_only_for
  std::string reason;  ///< the obligation, the element, or the sample
  std::string test;    ///< refuted: a test of the graph, for `pwr test`
  /// Whether the proof is there, of all cases, and no sample speaks against it: what is equal over
  /// the reals may overflow.
  [[nodiscard]] bool complete() const;
  /// Why it is not complete; empty where it is.
  [[nodiscard]] std::string left_to_show() const;
  /// "rounds differently (over the reals)"
  [[nodiscard]] std::string print() const;
};

/// Proves rules of one set, one after another.
class RuleProver {
 public:
  RuleProver(const LoadedRules& rules, const ProveRequest& request);
  ~RuleProver();
  RuleProof prove(RuleId rule);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// In the order of the rules; `done` is called with each when it is there. PW1420 for a rule that
/// there is not.
Result<std::vector<RuleProof>> prove_rules(
    const LoadedRules& rules, const ProveRequest& request, const Log& log,
    const std::function<void(const RuleProof&)>& done = [](const RuleProof&) {});

/// One object on one line: rule, verdict, known_by, ulps, only_for, reason, granted, guards, cases,
/// test.
[[nodiscard]] std::string rule_proof_to_json(const RuleProof& proof);

}  // namespace pw
