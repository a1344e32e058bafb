// Branch and bound on one part, with the prices of a lower bound.
#pragma once

#include "rewriter/extract/prices.hpp"

namespace pw::extract {

struct Search {
  /// By class: the nodes that may be chosen; none: all.
  std::vector<std::vector<NodeIndex>> allowed;
  double below = 0;         ///< only what costs less is looked for
  std::uint64_t steps = 0;  ///< that may be made; what is left when it returns
  Choice first;             ///< tried first where it is allowed
};
struct Found {
  bool complete = false;  ///< all was searched: there is nothing better
  Choice choice;          ///< empty: nothing that costs less was found
  double cost = 0;
};
Found branch_and_bound(const Network& network, const Prices& prices, Search& search);

}  // namespace pw::extract
