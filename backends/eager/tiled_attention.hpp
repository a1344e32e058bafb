// Attention in f32 by tiles of packed panels: scores stay where a tile of products put them until
// they are the operand of the next.
#pragma once

#include "backends/eager/attention_sizes.hpp"

namespace pw::eager {

/// The results of a call of scaled_attention whose extents fit.
void attend_by_tiles(Call& call, const AttentionSizes& sizes);

}  // namespace pw::eager
