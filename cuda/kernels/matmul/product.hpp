// Matmuls of a graph on a device, and kernels for those that no library runs. They use tensor cores
// if the operands allow it. Otherwise tiles in shared memory sum in f32 in the order of k, which is
// correct everywhere but slow.
#pragma once

#include <optional>
#include <vector>

#include "cuda/device/driver.hpp"
#include "cuda/kernels/matmul/tensor_product.hpp"

namespace pw::cuda {

/// Returns how an mm, addmm or scaled_mm of two matrices reads its operands, by index; nothing for
/// other nodes. b is not transposed.
[[nodiscard]] std::optional<ProductCall> product_call(const Graph& graph, NodeId node);

/// Returns the kernel of a product of floats of at most 32 bits whose extents except the rows are
/// fixed; nothing for other nodes. Its results have the bits of the f32 interpreter.
[[nodiscard]] std::optional<Kernel> product_kernel(const Graph& graph, NodeId node);

/// Returns the tensor-core product of two operands of one dtype. With `b_transposed`, b comes from
/// a transposition, and the kernel reads that one's operand.
[[nodiscard]] std::optional<TensorProduct> tensor_product_of(const Graph& graph, NodeId node,
                                                             bool b_transposed);
/// A matmul of a graph: its node, preceded by the transposition that makes b for it alone, if any.
struct FoundProduct {
  std::vector<NodeId> nodes;
  TensorProduct product;
};
[[nodiscard]] std::vector<FoundProduct> tensor_products_of(const Graph& graph);
/// Returns the kernels of a matmul, if the architecture supports the dtype.
[[nodiscard]] std::optional<TensorKernels> tensor_product_kernels(const Graph& graph, NodeId node,
                                                                  bool b_transposed,
                                                                  const TensorChoice& choice);

}  // namespace pw::cuda
