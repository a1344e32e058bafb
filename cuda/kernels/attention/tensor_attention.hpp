// Attention on tensor cores (tensor_attention.cu): FlashAttention-2 with a lazily rescaled online
// softmax. For few rows a block has one token whose heads are packed into rows (GQA packing), and
// its warps divide the keys. If there are too few tokens for all multiprocessors, blocks divide the
// keys as well (split-KV), and the last block of a token adds the parts. For more rows a block has
// tiles of tokens, for warps or for warpgroups (group_attention.cu).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cuda/kernels/attention/attention_tiles.hpp"
#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

/// One kernel form. With split-KV it writes results, partial sums, and arrival counters.
struct AttentionForm {
  Kernel kernel;  ///< the kernel's rows are tokens
  AttentionTile tile;
  std::int64_t part_floats = 0;  ///< floats of the sums of a token
};

struct AttentionShape {
  DType in = DType::bf16;  ///< dtype of queries, keys and values
  DType out = DType::bf16;
  DimId rows;
  std::int64_t heads = 0, groups = 0, width = 0, page_tokens = 0;
  /// Types of the queries, pages of keys and values, table starts, key counts, and the table.
  std::vector<TypeId> reads;
  std::optional<TypeId> divisor;  ///< type of the divisor, one element
  TypeId result;
};

struct AttentionForms {
  std::vector<AttentionForm> all;  ///< in the order of `tiles`
  AttentionTiles tiles;
  std::int64_t groups = 0;
  [[nodiscard]] const AttentionForm& of(std::int64_t rows, std::int64_t query) const {
    return all[tiles.of(rows, query)];
  }
  /// Returns the maximum number of floats of partial sums for a step of `rows` rows.
  [[nodiscard]] std::int64_t part_floats(std::int64_t rows) const;
};

/// Returns the forms. Nothing if the head width is not a multiple of 16 up to 128, for more than 16
/// heads a group, for dtypes other than bf16 and f16, and for architectures without tensor-core
/// instructions for them. `tiles`: null for the model's choice, for steps of `query` new tokens of
/// each sequence and others.
[[nodiscard]] std::optional<AttentionForms> tensor_attention(const AttentionShape& shape,
                                                             std::string_view arch,
                                                             const AttentionTiles* tiles,
                                                             std::int64_t query, Context& context);

/// Returns the prelude of such kernels, which follows tensor_prelude().
[[nodiscard]] std::string_view tensor_attention_prelude();

}  // namespace pw::cuda
