// The order of sums of the tensor-core kernels of attention, which
// cuda/kernels/attention/tensor_attention.cu documents; tests/ordered_attention.hpp adds in the
// same order on the host.
#pragma once

namespace pw {

struct AttentionOrder {
  int keys = 64;    ///< keys per block; a multiple of 16
  int strands = 1;  ///< strands that take the key blocks in turn
  int parts = 1;    ///< parts of the keys; each part has `strands` strands
  friend bool operator==(const AttentionOrder&, const AttentionOrder&) = default;
};

}  // namespace pw
