// Finds right operands of products that are computed from stored weights: each element times the
// scale of its block, as the body of block_scaled_mm writes them.
#pragma once

#include <optional>
#include <vector>

#include "cuda/kernels/matmul/tensor_product.hpp"

namespace pw::cuda {

struct ScaledWeight {
  ValueId weight;             ///< stored with a row for each column of the product
  ValueId scale;              ///< f32
  BlockScales blocks;         ///< without the operand
  std::vector<NodeId> nodes;  ///< that compute the operand, for this product alone
};

/// Returns how an operand of a product is computed, if it is an f32 matrix of that form whose
/// blocks have whole groups of 8 elements of a stored row.
[[nodiscard]] std::optional<ScaledWeight> scaled_weight(const Graph& graph, NodeId product,
                                                        std::size_t operand);

/// Returns the product that reads the stored weight, and its scales as one more operand.
[[nodiscard]] TensorProduct with_scaled_weight(TensorProduct product, const ScaledWeight& weight,
                                               const Graph& graph);

}  // namespace pw::cuda
