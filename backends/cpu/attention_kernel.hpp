// A block of query rows of one head against the keys before them, by instruction set; attention.cpp
// chooses.
#pragma once

#include <cstdint>

namespace pw {

/// All in f32; steps in elements from row to row. Row r of the queries sees the first `seen` + r
/// keys; there are `seen` + `rows` - 1 of them.
struct AttentionBlock {
  const float *q, *k, *v;
  float* out;
  std::int64_t rows, seen, width;
  std::int64_t q_step, kv_step, out_step;
  float scale;    ///< of the scores
  float divisor;  ///< of the results
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
