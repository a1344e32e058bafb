// Whether a graph and the graphs of several ranks compute the same, when a relation says what the
// inputs of one are of the inputs of the others. No number is drawn: each op of the ranks is shown
// to be an op of the single graph, on parts that fit together, or it is not.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "proof/equal/relation.hpp"

namespace pw::proof {

/// An output of the single graph, and what is claimed of one of the ranks.
struct ClaimVerdict {
  std::string left, right;
  Part part = Part::replicated;
  std::int64_t dim = 0;
  bool proved = false;
  /// Not proved: the first node of the ranks that is no node of the single graph, and why. What
  /// comes before it agrees.
  std::string node, op, source, reason;
};

struct Equality {
  std::string problem;  ///< nothing could be compared: why
  std::vector<ClaimVerdict> claims;
  bool rounds = false;                 ///< sums are added up in another order
  std::set<std::string> granted;       ///< what was taken for granted
  std::vector<std::string> assumed;    ///< inputs taken to be equal for their names and types
  std::size_t nodes = 0, matched = 0;  ///< of a rank; those that the single graph has too
  [[nodiscard]] bool proved() const;
};

Equality prove_equal(const Graph& single, const std::vector<const Graph*>& ranks,
                     const Relation& relation);

}  // namespace pw::proof
