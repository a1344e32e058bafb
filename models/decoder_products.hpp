// Internal to models/: the linear layers of a decoder, quantised as the options ask.
#pragma once

#include <string>

#include "models/decoder_nodes.hpp"

namespace pw {

/// of_sum: added to the sum over all ranks, so on one rank only.
enum class Bias { none, own, of_sum };

/// Multiplies by a weight. `whole`: all ranks hold the same matrix. A matrix that does not consist
/// of whole blocks stays bf16.
ValueId product(DecoderNodes& n, ValueId x, const std::string& name, std::int64_t from,
                std::int64_t to, Bias bias = Bias::none, bool whole = false);

}  // namespace pw
