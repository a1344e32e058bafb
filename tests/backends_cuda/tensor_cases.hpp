// For tests of tensor cores, on the host and on a device: instructions by themselves, and products
// of random forms.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "cuda/kernels/matmul/tensor_product.hpp"
#include "tensor/tensor.hpp"

namespace pw::test {

/// A kernel of one warp that is one instruction: y = a · b + c.
struct Instruction {
  cuda::Kernel kernel;
  DType dtype = DType::bf16;
  int depth = 16;
};
/// `mma` of each dtype.
std::vector<Instruction> instructions();
/// a, b, c of f32, and memory for y.
std::vector<Tensor> operands_of(const Instruction& instruction, Random& random);

/// A kernel of a warpgroup that is one instruction: y = a · b + c of 64 rows and 16 of k.
struct GroupInstruction {
  cuda::Kernel kernel;
  DType dtype = DType::bf16;
  int columns = 64;
  bool down = false, registers = false;  ///< b's rows are k; a is in registers
  bool adds = true;                      ///< to what d was
};
/// `wgmma` of each dtype, width, and place of its operands, that adds and that does not.
std::vector<GroupInstruction> group_instructions();
/// a [64, 16], b [columns, 16], or [16, columns] where it is `down`, c of f32, and memory for y.
std::vector<Tensor> operands_of(const GroupInstruction& instruction, Random& random);

/// A kernel of one warp that loads four matrices as they are and transposed: of u16[256], u32[256].
cuda::Kernel matrix_loads();
/// Returns the written tensors.
std::vector<std::uint32_t> loaded_matrices(std::span<const std::uint16_t> in);

struct ProductCase {
  std::string text;
  std::string in_pieces;  ///< the graph that adds pieces of k in the order of the kernels
  std::int64_t rows = 0;
  cuda::ProductTile tile;
  bool transposed = false;
};
/// A case of a random form; most extents are not multiples of a tile.
ProductCase random_product(Random& random);
/// `n` rows of a product's text.
Graph product_graph(const ContextPtr& context, const std::string& text);
/// The kernels of the product at the end of a graph.
std::optional<cuda::TensorKernels> kernels_of(const Graph& graph, const cuda::TensorChoice& choice,
                                              bool transposed);
cuda::TensorProduct product_of(const Graph& graph, bool transposed);

}  // namespace pw::test
