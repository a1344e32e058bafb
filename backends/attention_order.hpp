// Single-precision attention that sums in the order of the tensor-core kernels (documented in
// cuda/kernels/attention/tensor_attention.cu). It is the oracle for their bits. It covers 16-bit
// floats; other calls and all other ops run on the interpreter.
#pragma once

#include <memory>

#include "backends/backend.hpp"

namespace pw {

struct AttentionOrder {
  int keys = 64;    ///< keys per block; a multiple of 16
  int strands = 1;  ///< strands that take the key blocks in turn
  int parts = 1;    ///< parts of the keys; each part has `strands` strands
  friend bool operator==(const AttentionOrder&, const AttentionOrder&) = default;
};

/// Returns the single-precision interpreter with its unified_attention replaced by this order.
[[nodiscard]] std::unique_ptr<Backend> make_interpreter(const AttentionOrder& order);

}  // namespace pw
