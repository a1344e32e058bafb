// Attention on tensor cores (tensor_attention.cu): for steps of few rows a block has one token and
// its warps share out the keys, and where there are too few tokens for all multiprocessors, blocks
// share out parts of the keys, which the last of them adds; for more rows a block has tiles of
// tokens, by warps or by warpgroups (group_attention.cu).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cuda/kernels/attention/attention_tiles.hpp"
#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

/// Where there are parts, the kernel writes results, their sums, and how many of them are there.
struct AttentionForm {
  Kernel kernel;  ///< its rows are tokens
  AttentionTile tile;
  std::int64_t part_floats = 0;  ///< of the sums of a token
};

struct AttentionShape {
  DType in = DType::bf16;  ///< of queries, keys and values
  DType out = DType::bf16;
  DimId rows;
  std::int64_t heads = 0, groups = 0, width = 0, page_tokens = 0;
  /// Of the queries, pages of keys and values, where a row's table begins, how many keys it sees,
  /// and the table.
  std::vector<TypeId> reads;
  std::optional<TypeId> divisor;  ///< of one element that results are divided by
  TypeId result;
};

struct AttentionForms {
  std::vector<AttentionForm> all;  ///< as `tiles` has them
  AttentionTiles tiles;
  std::int64_t groups = 0;
  [[nodiscard]] const AttentionForm& of(std::int64_t rows, std::int64_t query) const {
    return all[tiles.of(rows, query)];
  }
  /// Floats of the sums of parts, at most, of a step of so many rows.
  [[nodiscard]] std::int64_t part_floats(std::int64_t rows) const;
};

/// None for heads of another width than a multiple of 16 up to 128, for more than 16 heads a group,
/// for other dtypes than bf16 and f16, and for architectures without their products. `tiles`: null
/// for those that the model chooses, for steps of `query` new tokens of each sequence and others.
[[nodiscard]] std::optional<AttentionForms> tensor_attention(const AttentionShape& shape,
                                                             std::string_view arch,
                                                             const AttentionTiles* tiles,
                                                             std::int64_t query, Context& context);

/// What stands before such kernels, after tensor_prelude().
[[nodiscard]] std::string_view tensor_attention_prelude();

}  // namespace pw::cuda
