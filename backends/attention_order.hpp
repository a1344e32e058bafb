// Attention in single precision in the order of sums that kernels on tensor cores have
// (cuda/tensor_attention.cu says which): the oracle of their bits. Only for 16-bit floats; other
// calls, and all other ops, are the interpreter's.
#pragma once

#include <memory>

#include "backends/backend.hpp"

namespace pw {

struct AttentionOrder {
  int keys = 64;    ///< of a block: a multiple of 16
  int strands = 1;  ///< that blocks go round
  int parts = 1;    ///< of the keys, each with so many strands
  friend bool operator==(const AttentionOrder&, const AttentionOrder&) = default;
};

/// The interpreter in single precision, but for unified_attention.
[[nodiscard]] std::unique_ptr<Backend> make_interpreter(const AttentionOrder& order);

}  // namespace pw
