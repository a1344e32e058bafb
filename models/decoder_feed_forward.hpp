// Internal to models/: the feed-forward layers of a decoder, before the sum over all ranks.
#pragma once

#include <string>

#include "models/decoder_nodes.hpp"

namespace pw {

/// A dense layer of `width` columns, whose weights' names begin with `name`.
ValueId mlp(DecoderNodes& n, ValueId x, std::int64_t width, const std::string& name = "");
/// A mixture of experts: every expert processes every row, and its weight is 0 if it was not
/// chosen.
ValueId mixture(DecoderNodes& n, ValueId x);

}  // namespace pw
