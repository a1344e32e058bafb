// Proves that a rule preserves its outputs for all sizes, ranks of `*b`, dtypes, attributes, and
// world sizes that its guards admit. A rule becomes general graphs (schema.hpp), one for each case.
// Each output is compared in stages: as graphs (fold.hpp), elementwise (elements.hpp) as terms
// (terms.hpp) over indices (integers.hpp), then over the reals (reals/reals.hpp). Whatever remains
// unproved is `unknown`, with its open obligation.
//
// Other graph comparisons can use the same engine. Put both sides into one Graph over common
// inputs. Its outputs are first the left sides' values, then the right sides'; then
//   Solver solver; Integers integers(solver);       // facts of symbols: integers.assume(ix)
//   Comparison seen = compare_pairs(graph, pairs, integers);
// To compare one rank with many: elements of a graph whose `group` attributes name one group are
// those of a general rank. A value is the `all_gather` or `all_reduce` of all ranks' parts.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "dsl/ruleset.hpp"
#include "graph/graph.hpp"
#include "proof/integers/integers.hpp"
#include "proof/pair_proof.hpp"
#include "verify/prover.hpp"

namespace pw::proof {

/// All pairs of one graph, and the assumptions under which their verdicts hold.
struct Comparison {
  std::vector<PairVerdict> pairs;
  std::set<std::string> granted;
  [[nodiscard]] RuleVerdict verdict() const;  ///< returns the worst verdict
};
/// Compares the pairs. `ieee` is the remaining number of IEEE queries; it is decremented.
Comparison compare_pairs(Graph& graph, std::size_t pairs, Integers& integers, int* ieee = nullptr);

struct ProveOptions {
  std::size_t cases = 20000;  ///< maximum
};

/// Proves the rules of one set.
class Prover : public RuleProver {
 public:
  Prover(const RuleSet& rules, const Env& params, const ProveOptions& options = {});
  Proof prove(RuleId rule) override;

 private:
  struct Cases;
  void prove_cases(RuleId id, Proof& proof);
  void prove_case(RuleId id, Cases& cases, Proof& proof);

  RuleSet rules_;  ///< in its own context
  const Env& params_;
  ProveOptions options_;
  RuleSet unguarded_;
  Solver solver_;
};

}  // namespace pw::proof
