// Whether memory still holds what it held: checksums of its pieces, a few of which are compared at
// a time.
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
  /// Keeps what a tensor holds now, in the place of what was known of it.
  void keep(std::size_t tensor, const TensorView& view);
  /// Compares some pieces of the tensors, each time the next ones; or all of those of one. The
  /// first that holds something else.
  [[nodiscard]] std::optional<std::size_t> changed_next(std::span<const TensorView> tensors);
  [[nodiscard]] bool changed(std::size_t tensor, const TensorView& view) const;

 private:
  std::vector<std::vector<std::uint64_t>> sums_;  ///< by tensor and piece; empty: not kept
  std::size_t tensor_ = 0, piece_ = 0;            ///< that is compared next
};

}  // namespace pw
