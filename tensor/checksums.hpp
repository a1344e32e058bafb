// Detects changed memory by checksums of its pieces, of which each check compares a few.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tensor/tensor.hpp"

namespace pw {

class Checksums {
 public:
  /// Stores the current checksums of a tensor, in place of the earlier ones.
  void keep(std::size_t tensor, const TensorView& view);
  /// Compares the next few pieces of the tensors, or all pieces of one. Returns the first tensor
  /// whose contents changed.
  [[nodiscard]] std::optional<std::size_t> changed_next(std::span<const TensorView> tensors);
  [[nodiscard]] bool changed(std::size_t tensor, const TensorView& view) const;

 private:
  std::vector<std::vector<std::uint64_t>> sums_;  ///< by tensor and piece; empty: not stored
  std::size_t tensor_ = 0, piece_ = 0;            ///< the next piece to compare
};

}  // namespace pw
