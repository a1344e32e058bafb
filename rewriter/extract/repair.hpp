// Large neighbourhood search on one part: some of what a choice decides is forgotten and decided
// anew, where what is left of it costs nothing. It finds better choices, and says nothing of
// bounds.
#pragma once

#include "rewriter/extract/prices.hpp"

namespace pw::extract {

/// The best choice that is found from `start` within the steps; what is left of them is in `steps`.
/// `open`: by class the nodes that may be chosen. Same input, same choice.
Choice repair(const Network& network, const std::vector<std::vector<NodeIndex>>& open,
              const Choice& start, std::uint64_t& steps);

}  // namespace pw::extract
