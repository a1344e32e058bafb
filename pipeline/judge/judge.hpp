// The verdict on a rule: what its proof and its samples show together. Every command, the language
// server, and Python print the verdict that RuleJudge returns, so that no two of them disagree.
//
// A counterexample beats a proof. A proof settles what no sample contradicts. Without a proof,
// samples that agree show nothing of other inputs, and the verdict is `unknown`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/load.hpp"
#include "verify/prover.hpp"
#include "verify/rule_check.hpp"

namespace pw {

struct JudgeRequest {
  std::vector<std::int64_t> ranks{2, 4};  ///< world sizes for the samples of rules with collectives
  bool keep = true;                       ///< read and write verdicts in the compile cache
  bool proved_only = false;               ///< takes no samples of a rule without a proof
};

struct RuleJudgement {
  std::string rule;
  RuleVerdict verdict = RuleVerdict::unknown;
  KnownBy known = KnownBy::proof;
  Specials specials;   ///< of rounds and differs_only_for
  std::string reason;  ///< the sample, the element, or what is left to prove
  std::string test;    ///< refuted: the sample's graph as a test for `pwr test`
  /// The claim of the proof that a sample contradicts; empty otherwise. Always a bug of Piecewise.
  std::string contradiction;
  proof::Proof proof;
  RuleCheck samples;

  /// Returns true if the rule is proved in all cases and may be applied: same_bits, rounds, or
  /// differs_only_for.
  [[nodiscard]] bool complete() const;
  /// Returns what keeps complete() from being true; empty if it is.
  [[nodiscard]] std::string left_to_show() const;
  /// Returns true if no sample and no proof shows a difference.
  [[nodiscard]] bool holds() const;
  /// Returns the verdict in words, with the sample on further lines: "refuted: y[0] is 1 before …".
  [[nodiscard]] std::string print() const;
};

/// Combines a proof and samples of one rule.
[[nodiscard]] RuleJudgement combine_evidence(proof::Proof proof, RuleCheck samples);
/// Wraps samples of something that has no proof, such as a trait of an op.
[[nodiscard]] RuleJudgement judged_by_samples(RuleCheck samples);

/// Judges rules of one set, one after another.
class RuleJudge {
 public:
  RuleJudge(const LoadedRules& rules, const JudgeRequest& request);
  ~RuleJudge();
  RuleJudgement judge(RuleId rule);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the rules, families, and groups named, or all rules; without those that only open
/// recursive patterns. Fails with PW1420 for an unknown name.
Result<std::vector<RuleId>> rules_to_judge(const RuleSet& rules,
                                           const std::vector<std::string>& only);

/// Logs that verdicts may be weaker, if this build has proofs but no SMT solver is found.
void note_missing_solver(const Log& log);

/// Judges rules in their order; calls `done` with each as soon as it is known.
Result<std::vector<RuleJudgement>> judge_rules(
    const LoadedRules& rules, const std::vector<std::string>& only, const JudgeRequest& request,
    const Log& log,
    const std::function<void(const RuleJudgement&)>& done = [](const RuleJudgement&) {});

/// Judges the traits of ops that the rule files declare, and of those that the graph file `graph`
/// declares unless it is empty.
Result<std::vector<RuleJudgement>> judge_traits(const RuleSet& rules, const std::string& graph,
                                                const JudgeRequest& request, bool of_rules);

/// Returns a judgement as one JSON object on one line; docs/answers.schema.json has its fields.
[[nodiscard]] std::string judgement_to_json(const RuleJudgement& judgement);

/// Returns a warning for a rule that changes numbers or contradicts its proof; nothing otherwise.
/// `file`: the rule file to name in the command that shows more.
[[nodiscard]] Diagnostics verdict_warnings(const RuleSet& rules, RuleId rule,
                                           const RuleJudgement& judgement, const std::string& file);

}  // namespace pw
