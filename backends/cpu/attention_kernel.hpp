// Attention of a block of one head's query rows over the keys before them, compiled once per
// instruction set. attention.cpp selects the variant.
#pragma once

#include <cstdint>

namespace pw {

/// A block of f32 rows with strides in elements. Query row r sees the first `seen` + r keys; there
/// are `seen` + `rows` - 1 keys.
struct AttentionBlock {
  const float *q, *k, *v;
  float* out;
  std::int64_t rows, seen, width;
  std::int64_t q_step, kv_step, out_step;
  float scale;    ///< factor for the scores
  float divisor;  ///< divisor of the results
};

namespace portable {
void attend_block(const AttentionBlock& block);
}
namespace avx2 {
void attend_block(const AttentionBlock& block);
}
namespace avx512 {
void attend_block(const AttentionBlock& block);
}

}  // namespace pw
