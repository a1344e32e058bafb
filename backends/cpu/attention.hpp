// Attention of the cpu backend: as eager's, in blocks of queries and of keys, by the widest vectors
// that the processor has.
#pragma once

#include "backends/kernel.hpp"

namespace pw::cpu {

/// The kernel of `unified_attention`: causal inside each sequence of the step, grouped heads,
/// in f32; rows of padding give zero.
Status attention(Call& call);

}  // namespace pw::cpu
