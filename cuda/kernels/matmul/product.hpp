// Matmuls of a graph on a device, and kernels for those that no library takes: on tensor cores
// where there are some for the operands, else tiles in shared memory, sums in f32 in the order of
// k, which is correct everywhere, and not fast.
#pragma once

#include <optional>
#include <vector>

#include "cuda/device/driver.hpp"
#include "cuda/kernels/matmul/tensor_product.hpp"

namespace pw::cuda {

/// How an mm, addmm or scaled_mm of two matrices reads its operands, by their numbers; none for any
/// other node. b is not transposed.
[[nodiscard]] std::optional<ProductCall> product_call(const Graph& graph, NodeId node);

/// Of a product of floats of at most 32 bits, whose extents but the rows are fixed; none for any
/// other node. Its results have the bits of the interpreter in f32.
[[nodiscard]] std::optional<Kernel> product_kernel(const Graph& graph, NodeId node);

/// The same for tensor cores, of two operands of one dtype. Where `b_transposed`, b is made by a
/// transposition, and the kernel reads what that reads.
[[nodiscard]] std::optional<TensorProduct> tensor_product_of(const Graph& graph, NodeId node,
                                                             bool b_transposed);
/// A matmul of a graph: its node, after the transposition that makes its b for it alone, if any.
struct FoundProduct {
  std::vector<NodeId> nodes;
  TensorProduct product;
};
[[nodiscard]] std::vector<FoundProduct> tensor_products_of(const Graph& graph);
/// And its kernels, where the architecture multiplies that dtype.
[[nodiscard]] std::optional<TensorKernels> tensor_product_kernels(const Graph& graph, NodeId node,
                                                                  bool b_transposed,
                                                                  const TensorChoice& choice);

}  // namespace pw::cuda
