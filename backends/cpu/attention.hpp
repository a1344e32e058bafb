// Attention of the cpu backend: eager's algorithm in blocks of queries and keys, on the widest
// vectors of the processor.
#pragma once

#include "backends/kernel.hpp"

namespace pw::cpu {

/// Runs `unified_attention`: causal within each sequence of the step, grouped heads, f32
/// arithmetic. Padding rows give zero.
Status attention(Call& call);

}  // namespace pw::cpu
