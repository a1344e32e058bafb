// Matrix products on tensor cores (tensor_product.cu). On the host they have the bits of the f32
// interpreter. On a device the hardware decides the order of sums within one instruction, so strict
// runs do not use them.
#pragma once

#include <optional>
#include <string>

#include "cuda/kernels/emitter.hpp"
#include "cuda/kernels/matmul/schedules.hpp"
#include "cuda/kernels/matmul/tensor_model.hpp"

namespace pw::cuda {

/// Returns the prelude of tensor-core kernels, which is part of their source.
[[nodiscard]] std::string_view tensor_prelude();

/// Returns true if an architecture has instructions for products of a dtype: 16-bit floats from
/// sm_80 on, fp8 from sm_89 on.
[[nodiscard]] bool has_tensor_cores(std::string_view arch, DType dtype);

struct TensorChoice {
  std::string arch;
  std::int64_t rows = 1;                           ///< row count for the choice of a tile
  std::optional<ProductTile> tile = std::nullopt;  ///< replaces the table's and the model's tile
  const ScheduleTable* schedules = nullptr;        ///< tuned tiles; null: the model's
};

/// Scales of b, f32: an element at depth k of column c is multiplied by the scale with index
/// k / deep * deep_step + c / across * across_step.
struct BlockScales {
  DType weight = DType::f8e4m3;  ///< of the stored b
  std::size_t operand = 0;       ///< index of the scales
  std::int64_t deep = 1, across = 1, deep_step = 0, across_step = 0;
};

/// A product y = finish(a · b) whose extents except the rows are fixed.
struct TensorProduct {
  std::string op;
  DType in = DType::bf16, out = DType::bf16;
  std::size_t a = 0, b = 1;  ///< operand indices
  bool b_transposed = false;
  std::vector<TypeId> operands;  ///< types of the operands; b's as stored
  TypeId result;
  std::string value;  ///< expression of `sum`, at `row` and `column`; operand i is at `p{i}`
  DimId rows;
  std::int64_t depth = 0, columns = 0;
  std::optional<BlockScales> scales = std::nullopt;  ///< only streamed products have them
  [[nodiscard]] ProductShape shape(std::int64_t of_rows) const;
  /// Returns 16 hexadecimal digits: equal products have equal keys, independent of row names.
  [[nodiscard]] std::string key() const;
};

/// One launch. It reads the operands and writes the result. If tiles are divided, the partial sums
/// of pieces and the arrival counters of their blocks precede the result.
struct TensorKernels {
  ProductTile tile;
  Kernel product;
  /// f32[rows of tiles, pieces, sums of a tile], see ProductDivision, and i64[rows of tiles, tiles
  /// of one], 0 before and after the launch; nothing if no tile is divided.
  std::optional<TypeId> sums, met;
};

/// Returns the kernels; nothing if the architecture lacks the instructions.
[[nodiscard]] std::optional<TensorKernels> tensor_product(const TensorProduct& product,
                                                          const TensorChoice& choice,
                                                          Context& context);

/// Returns a kernel whose text uses tensor_prelude() and further text after it, with `shared_bytes`
/// of dynamic shared memory.
[[nodiscard]] Kernel tensor_kernel(const WrittenKernel& text, std::int64_t shared_bytes,
                                   std::string_view more_prelude = {});

}  // namespace pw::cuda
