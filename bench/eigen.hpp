// One vectorised Eigen expression for an op over f32: the baseline for eager.
#pragma once

#include <cstdint>
#include <span>

namespace pw::bench {

struct EigenOp {
  const char* text;  ///< the op over x and z, in the language
  void (*run)(const float* x, const float* z, float* y, std::int64_t rows, std::int64_t columns);
};
[[nodiscard]] std::span<const EigenOp> eigen_ops();

}  // namespace pw::bench
