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
#include "verify/rule_verdict.hpp"

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

/// What a proof of `rounds` grants where it adds numbers up.
inline constexpr const char* kPartialSums = "the partial sums of a sum stay finite";

struct Proof {
  std::string rule;
  RuleVerdict verdict = RuleVerdict::unknown;
  Specials specials;                  ///< of differs_only_for
  std::string reason;                 ///< the obligation, the element or the counterexample
  std::set<std::string> granted;      ///< what was taken for granted
  std::vector<std::string> needed;    ///< guards on sizes that the proof rests on
  std::vector<std::string> unneeded;  ///< those that it does not
  std::size_t cases = 0;              ///< general graphs looked at
  /// Some case could not be made general: what holds in the others is proved, this is not.
  std::string uncovered;
  std::string element;  ///< inputs for which the sides differ, found by a solver
  double seconds = 0;   ///< not part of deterministic output
  [[nodiscard]] bool proved() const {
    return verdict == RuleVerdict::same_bits || verdict == RuleVerdict::rounds ||
           verdict == RuleVerdict::differs_only_for;
  }
};

struct ProveOptions {
  std::size_t cases = 20000;  ///< at most
};

/// Proves rules of one set.
class Prover {
 public:
  Prover(const RuleSet& rules, const Env& params, const ProveOptions& options = {});
  Proof prove(RuleId rule);

 private:
  RuleSet rules_;  ///< in a context of its own
  const Env& params_;
  ProveOptions options_;
  RuleSet unguarded_;
  Solver solver_;
};

}  // namespace pw::proof
