// Branch and bound on one part, with the prices of a lower bound.
#pragma once

#include "rewriter/extract/prices.hpp"

namespace pw::extract {

struct Search {
  /// Nodes that may be chosen, by class; empty: all.
  std::vector<std::vector<NodeIndex>> allowed;
  double below = 0;         ///< only cheaper choices are searched for
  std::uint64_t steps = 0;  ///< steps that may be made; the remaining ones on return
  Choice first;             ///< tried first if allowed
};
struct Found {
  bool complete = false;  ///< the search is exhaustive: nothing is better
  Choice choice;          ///< empty: nothing cheaper was found
  double cost = 0;
};
Found branch_and_bound(const Network& network, const Prices& prices, Search& search);

}  // namespace pw::extract
