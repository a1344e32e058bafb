// Proves the rewrites of a run. Each either applies a proved rule whose guards held, or its change
// is proved separately. The rest are listed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pipeline/judge/judge.hpp"
#include "pipeline/judge/run_proof.hpp"
#include "pipeline/report/table.hpp"
#include "pipeline/variants.hpp"

namespace pw {

/// Proves the runs of one pipeline. Each rule is proved once, and verdicts are cached.
class RunProver {
 public:
  /// `options` are those of the runs.
  RunProver(const LoadedRules& rules, std::string pipeline, const RewriteOptions& options,
            const Log& log);
  /// `graph` is the input of the run; `otherwise` marks the variant without the rules' assumptions.
  RunProof prove(const Graph& graph, const RewriteReport& report, TokenRange range,
                 bool otherwise = false);

 private:
  const RuleJudgement& of_rule(RuleId rule);

  const LoadedRules& rules_;
  std::string pipeline_;
  RewriteOptions options_;
  const Log& log_;
  RuleJudge judge_;
  std::map<RuleId, RuleJudgement> known_;
};

/// Proves all graphs that the pipeline produced from this one.
std::vector<RunProof> prove_variants(const Graph& graph, const LoadedRules& rules,
                                     const std::string& pipeline, const RewriteOptions& options,
                                     const std::vector<GraphVariant>& variants, const Log& log);
/// Returns a summary: "44 rewrites: …", with the variant's name if there are several.
[[nodiscard]] std::string proof_line(const RunProof& proof, const std::string& variant);
/// Returns a row for each rule that fired and for each unproved rewrite.
[[nodiscard]] Table run_proof_table(const RunProof& proof);
[[nodiscard]] Table left_table(const RunProof& proof);
/// Adds `proofs` and `not_proved` of all graphs to the answer.
void add_proofs(Answer& answer, const std::vector<GraphVariant>& variants,
                const std::vector<RunProof>& proofs);

}  // namespace pw
