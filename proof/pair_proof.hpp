// Proves that two values of a graph are equal, elementwise and for all inputs.
#pragma once

#include <set>
#include <string>

#include "graph/graph.hpp"
#include "proof/elements.hpp"
#include "proof/terms.hpp"
#include "verify/prover.hpp"

namespace pw::proof {

/// The verdict on one pair of outputs. Names are those of the rule or of the graphs.
struct PairVerdict {
  /// One of same_bits, rounds, differs_only_for, may_overflow, unknown.
  RuleVerdict verdict = RuleVerdict::unknown;
  std::string obligation;  ///< the open obligation if unknown
  Specials specials;       ///< for rounds and differs_only_for
  std::string element;     ///< inputs found by a solver for which the two sides differ
  bool flips = false;      ///< the element is finite, and rounding decides a comparison there
};

/// Returns the verdict that promises less.
RuleVerdict worse(RuleVerdict a, RuleVerdict b);

struct PairQuestion {
  ValueId left, right;
  bool laws = true;     ///< otherwise only equal terms are equal
  int* ieee = nullptr;  ///< the remaining number of IEEE queries; it is decremented
};
/// Compares two values of the elements' graph, and adds the assumptions of the proof to `granted`.
PairVerdict prove_pair(Elements& elements, Terms& terms, const PairQuestion& question,
                       std::set<std::string>& granted);

}  // namespace pw::proof
