// Whether the rewrites of a run are proved: each is an application of a proved rule, whose guards
// held, or what it changed is compared by itself. What is left is named.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pipeline/judge/judge.hpp"
#include "pipeline/judge/run_proof.hpp"
#include "pipeline/report/table.hpp"
#include "pipeline/variants.hpp"

namespace pw {

/// Of one pipeline, for the graphs that it made of others. Rules are proved once, and what is kept
/// is not proved again.
class RunProver {
 public:
  /// `options`: with which the runs were made.
  RunProver(const LoadedRules& rules, std::string pipeline, const RewriteOptions& options,
            const Log& log);
  /// `graph`: before the run; `otherwise`: it was made without what rules assume.
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

/// Of all graphs that the pipeline made of this one.
std::vector<RunProof> prove_variants(const Graph& graph, const LoadedRules& rules,
                                     const std::string& pipeline, const RewriteOptions& options,
                                     const std::vector<GraphVariant>& variants, const Log& log);
/// "44 rewrites: …", with the variant's name where there are several.
[[nodiscard]] std::string proof_line(const RunProof& proof, const std::string& variant);
/// A row a rule that fired; a row a rewrite that is left.
[[nodiscard]] Table run_proof_table(const RunProof& proof);
[[nodiscard]] Table left_table(const RunProof& proof);
/// `proofs` and `not_proved`, of all graphs.
void add_proofs(Answer& answer, const std::vector<GraphVariant>& variants,
                const std::vector<RunProof>& proofs);

}  // namespace pw
