// f32 attention on tiles of packed panels: scores stay in the layout of one product tile until they
// are the operand of the next product.
#pragma once

#include "backends/eager/attention_sizes.hpp"

namespace pw::eager {

/// Computes the results of a scaled_attention call whose extents fit the tiles.
void attend_by_tiles(Call& call, const AttentionSizes& sizes);

}  // namespace pw::eager
