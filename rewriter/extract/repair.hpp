// Large neighbourhood search on one part: some decisions of a choice are removed and made again,
// while the remaining ones cost nothing. Finds better choices, but no bounds.
#pragma once

#include "rewriter/extract/prices.hpp"

namespace pw::extract {

/// Returns the best choice found from `start` within the steps; `steps` receives the remaining
/// ones. `open`: the nodes that may be chosen, by class. Deterministic.
Choice repair(const Network& network, const std::vector<std::vector<NodeIndex>>& open,
              const Choice& start, std::uint64_t& steps);

}  // namespace pw::extract
