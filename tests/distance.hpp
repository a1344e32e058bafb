// Distances of numbers from the expected ones, for tests whose sums may have another order.
#pragma once

#include <algorithm>
#include <cmath>

#include "tensor/numerics.hpp"
#include "tensor/tensor.hpp"

namespace pw::test {

/// The distance of two tensors with the same extents.
struct Distance {
  double worst = 0;    ///< largest difference; infinite where one of the numbers is not finite
  double largest = 0;  ///< of what is wanted
};

inline Distance distance(const TensorView& got, const TensorView& wanted) {
  Distance out;
  for (std::int64_t i = 0; i < wanted.count(); ++i) {
    const double w = load(wanted.dtype, wanted.data, i);
    const double apart = std::abs(load(got.dtype, got.data, i) - w);
    out.worst = std::max(out.worst, std::isfinite(apart) ? apart : INFINITY);
    out.largest = std::max(out.largest, std::abs(w));
  }
  return out;
}

}  // namespace pw::test
