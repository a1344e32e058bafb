// Finds other graphs that compute the same as a window, by fingerprints at its small sizes.
// Candidates are a library op whose body is the window, and small graphs of the window's own ops
// plus `cat` and `split`, such as one matmul that replaces several.
#pragma once

#include <vector>

#include "discover/windows.hpp"

namespace pw::discover {

/// Returns forms over the window's inputs with its outputs in order, each once, smallest first.
/// Adds the number of evaluated graphs to `tried`.
[[nodiscard]] std::vector<Form> counterparts(const ContextPtr& context, Evaluator& evaluator,
                                             const Window& window, std::uint64_t seed,
                                             std::size_t& tried);

}  // namespace pw::discover
