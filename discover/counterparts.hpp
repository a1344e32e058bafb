// Other graphs that compute what a window computes, told by their fingerprints at its small sizes:
// one op of the library whose body it is, and small graphs of the window's own ops, `cat` and
// `split`, such as one product in place of several.
#pragma once

#include <vector>

#include "discover/windows.hpp"

namespace pw::discover {

/// Over the window's inputs and with its outputs in their order; each once, the smallest first.
/// `tried` grows by the graphs that were evaluated.
[[nodiscard]] std::vector<Form> counterparts(const ContextPtr& context, Evaluator& evaluator,
                                             const Window& window, std::uint64_t seed,
                                             std::size_t& tried);

}  // namespace pw::discover
