// Decides whether a single-device graph and the graphs of several ranks compute the same outputs,
// given a relation between their inputs. The method is symbolic, without samples: each op of the
// ranks must correspond to an op of the single graph on matching parts.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "proof/equal/relation.hpp"

namespace pw::proof {

/// One output of the single graph and the claim about its counterpart on the ranks.
struct ClaimVerdict {
  std::string left, right;
  Part part = Part::replicated;
  std::int64_t dim = 0;
  bool proved = false;
  /// Set if not proved: the first node of the ranks without a counterpart in the single graph, and
  /// the reason. All earlier nodes agree.
  std::string node, op, source, reason;
};

/// The result for all claims. A graph without claims would be proved vacuously, so all outputs are
/// claimed by default.
struct Equality {
  std::string problem;  ///< why nothing could be compared; otherwise empty
  std::vector<ClaimVerdict> claims;
  bool rounds = false;               ///< sums are evaluated in another order
  std::set<std::string> granted;     ///< assumptions of the proof
  std::vector<std::string> assumed;  ///< inputs assumed equal because their names and types agree
  std::size_t nodes = 0,
              matched = 0;  ///< nodes of one rank, and those with a counterpart in the single graph
  [[nodiscard]] bool proved() const;
};

/// Compares the graphs; `ranks` contains one graph for each rank, in order, and at least one.
Equality prove_equal(const Graph& single, const std::vector<const Graph*>& ranks,
                     const Relation& relation);

}  // namespace pw::proof
