// What is proved of the rewrites of a run: each is an application of a rule, whose guards held.
#pragma once

#include <string>
#include <vector>

#include "pipeline/proving.hpp"
#include "pipeline/table.hpp"
#include "rewriter/rewriter.hpp"

namespace pw {

struct RunProof {
  struct Fired {
    std::size_t rewrites = 0;
    RuleProof proof;
  };
  std::vector<Fired> rules;  ///< in the order of the rules
  std::size_t rewrites = 0, proved = 0;
  /// "41 of 44 rewrites are proved; left: attn_quant#0 (3)"
  [[nodiscard]] std::string print() const;
};

/// Of all rewrites of the reports. A rule is proved once, and what is kept is not proved again.
[[nodiscard]] RunProof prove_run(const std::vector<const RewriteReport*>& reports,
                                 const LoadedRules& rules, const Log& log);

/// A row a rule that fired.
[[nodiscard]] Table run_proof_table(const RunProof& proof);

}  // namespace pw
