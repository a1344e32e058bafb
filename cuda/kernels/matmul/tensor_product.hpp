// The text of matrix products on tensor cores (tensor_product.cu). On the host they have the bits
// of the interpreter in f32; on a device the order of sums within one instruction is the
// hardware's, so that they are no kernels of a strict run.
#pragma once

#include <optional>
#include <string>

#include "cuda/kernels/emitter.hpp"
#include "cuda/kernels/matmul/schedules.hpp"
#include "cuda/kernels/matmul/tensor_model.hpp"

namespace pw::cuda {

/// What the kernels on tensor cores have before them, within their source.
[[nodiscard]] std::string_view tensor_prelude();

/// Whether an architecture has instructions for products of a dtype: 16-bit floats from sm_80 on,
/// fp8 from sm_89 on.
[[nodiscard]] bool has_tensor_cores(std::string_view arch, DType dtype);

struct TensorChoice {
  std::string arch;
  std::int64_t rows = 1;                           ///< that a tile is chosen for
  std::optional<ProductTile> tile = std::nullopt;  ///< in place of the table's and the model's
  const ScheduleTable* schedules = nullptr;        ///< what tuning found; null: the model's
};

/// A product y = finish(a · b) whose extents but the rows are fixed.
struct TensorProduct {
  std::string op;
  DType in = DType::bf16, out = DType::bf16;
  std::size_t a = 0, b = 1;  ///< among the operands
  bool b_transposed = false;
  std::vector<TypeId> operands;  ///< b's as it is stored
  TypeId result;
  std::string value;  ///< of `sum`, at `row` and `column`; operand i is at `p{i}`
  DimId rows;
  std::int64_t depth = 0, columns = 0;
  [[nodiscard]] ProductShape shape(std::int64_t of_rows) const;
  /// 16 hexadecimal digits: equal products have equal keys, whatever their rows are called.
  [[nodiscard]] std::string key() const;
};

/// One launch. It reads the operands and writes the result, before which, where tiles are cut,
/// stand the sums of pieces and the numbers by which blocks that have them meet.
struct TensorKernels {
  ProductTile tile;
  Kernel product;
  /// f32[rows of tiles, pieces, sums of a tile], see ProductDivision, and i64[rows of tiles, tiles
  /// of one], 0 before and after the launch; none where no tile is cut.
  std::optional<TypeId> sums, met;
};

/// None where the architecture has no instructions for it.
[[nodiscard]] std::optional<TensorKernels> tensor_product(const TensorProduct& product,
                                                          const TensorChoice& choice,
                                                          Context& context);

/// A kernel that uses tensor_prelude() and what stands after it, with dynamic shared memory of so
/// many bytes.
[[nodiscard]] Kernel tensor_kernel(const WrittenKernel& text, std::int64_t shared_bytes,
                                   std::string_view more_prelude = {});

}  // namespace pw::cuda
