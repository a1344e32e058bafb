// The kernel of a matrix product, for devices without a library of products: tiles in shared
// memory, sums in f32 in the order of k. Made to be right everywhere, not to be fast.
#pragma once

#include <optional>

#include "backends/cuda/emitter.hpp"

namespace pw::cuda {

/// Of an mm, addmm or scaled_mm of floats of at most 32 bits, whose extents but the rows are fixed;
/// none for any other node. Its results have the bits of the interpreter in f32.
[[nodiscard]] std::optional<Kernel> product_kernel(const Graph& graph, NodeId node);

}  // namespace pw::cuda
