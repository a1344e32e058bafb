// Matmuls of a graph on a device, and a kernel for those that no library takes: tiles in shared
// memory, sums in f32 in the order of k. Correct everywhere, not fast.
#pragma once

#include <optional>

#include "backends/cuda/driver.hpp"

namespace pw::cuda {

/// How an mm, addmm or scaled_mm of two matrices reads its operands, by their numbers; none for any
/// other node. b is not transposed.
[[nodiscard]] std::optional<ProductCall> product_call(const Graph& graph, NodeId node);

/// Of a product of floats of at most 32 bits, whose extents but the rows are fixed; none for any
/// other node. Its results have the bits of the interpreter in f32.
[[nodiscard]] std::optional<Kernel> product_kernel(const Graph& graph, NodeId node);

}  // namespace pw::cuda
