// Whether a rule keeps the numbers, for all sizes, ranks of `*b`, dtypes, attributes and world
// sizes that its guards admit. A rule becomes general graphs (schema.hpp), one a case; each output
// before is compared with that after: first as graphs (fold.hpp), then element by element
// (elements.hpp) as terms (terms.hpp) over indices (integers.hpp), then over the reals (reals.hpp).
// What is not shown is `unknown`, with what is left to show.
//
// For others that compare graphs: put both sides into one Graph over common inputs, with the left
// sides' values as its first outputs and the right sides' as its next; then
//   Solver solver; Integers integers(solver);       // facts of symbols: integers.assume(ix)
//   Comparison seen = compare_pairs(graph, pairs, integers);
// One rank against many: elements of a graph whose `group` attributes name one group are those of a
// general rank; a value is `all_gather` or `all_reduce` of the parts of all ranks.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "dsl/ruleset.hpp"
#include "graph/graph.hpp"
#include "proof/integers.hpp"
#include "verify/prover.hpp"

namespace pw::proof {

/// One pair of outputs. Names are the rule's or the graphs' own.
struct PairVerdict {
  /// same_bits, rounds, differs_only_for or unknown.
  RuleVerdict verdict = RuleVerdict::unknown;
  std::string obligation;  ///< unknown: what is left
  Specials specials;       ///< of differs_only_for
  std::string element;     ///< inputs for which the two differ, if a solver found some
};
struct Comparison {
  std::vector<PairVerdict> pairs;
  std::set<std::string> granted;
  [[nodiscard]] RuleVerdict verdict() const;  ///< the worst
};
/// `ieee`: how many questions on IEEE arithmetic may still be asked; counted down.
Comparison compare_pairs(Graph& graph, std::size_t pairs, Integers& integers, int* ieee = nullptr);

struct ProveOptions {
  std::size_t cases = 20000;  ///< at most
};

/// Proves rules of one set.
class Prover : public RuleProver {
 public:
  Prover(const RuleSet& rules, const Env& params, const ProveOptions& options = {});
  Proof prove(RuleId rule) override;

 private:
  RuleSet rules_;  ///< in a context of its own
  const Env& params_;
  ProveOptions options_;
  RuleSet unguarded_;
  Solver solver_;
};

}  // namespace pw::proof
