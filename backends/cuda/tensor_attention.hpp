// Attention on tensor cores (tensor_attention.cu): one form for steps of few rows, where a block
// has one token and its warps share out the keys, and one for more, where a block has tiles of
// tokens.
#pragma once

#include <optional>

#include "backends/attention_order.hpp"
#include "backends/cuda/emitter.hpp"

namespace pw::cuda {

struct AttentionForm {
  Kernel kernel;  ///< its rows are tokens
  AttentionOrder order;
};

struct AttentionShape {
  DType in = DType::bf16;  ///< of queries, keys and values
  DType out = DType::bf16;
  std::int64_t heads = 0, groups = 0, width = 0, page_tokens = 0;
  std::string divide;  ///< a statement that changes `y`, or nothing
};

struct AttentionForms {
  AttentionForm few, many;
  /// Steps of at most so many rows are taken for a token of each of many sequences.
  std::int64_t few_rows = 256;
  [[nodiscard]] const AttentionForm& of(std::int64_t rows) const {
    return rows <= few_rows ? few : many;
  }
};

/// `text` has the arguments and the signature of the kernel: q, pages of k and v, where a row's
/// table begins, how many keys it sees, the table, the divisor if any, y. None for heads of another
/// width than a multiple of 16 up to 128, for more than 16 heads a group, for other dtypes than
/// bf16 and f16, and for architectures without their products.
[[nodiscard]] std::optional<AttentionForms> tensor_attention(const WrittenKernel& text,
                                                             const AttentionShape& shape,
                                                             std::string_view arch);

/// What stands before such kernels, after tensor_prelude().
[[nodiscard]] std::string_view tensor_attention_prelude();

}  // namespace pw::cuda
