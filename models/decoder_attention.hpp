// Internal to models/: the attention layers of a decoder, before the sum over all ranks.
#pragma once

#include "models/decoder_nodes.hpp"

namespace pw {

/// Grouped-query attention. `turns`: queries and keys are rotated by their positions.
ValueId attention(DecoderNodes& n, ValueId x, bool turns);
/// Multi-head latent attention, with explicit keys and values unless the graph is opaque.
ValueId latent_attention(DecoderNodes& n, ValueId x);

}  // namespace pw
