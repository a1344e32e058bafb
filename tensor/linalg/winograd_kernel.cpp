// Transforms of F(2×2, 3×3) as in Lavin and Gray, 2015 (arXiv:1509.09308), section 4.1. They need
// only additions: 32 for an input tile and 24 for an output tile, for each channel.
#include "tensor/linalg/winograd_kernel.hpp"

#include "tensor/linalg/lanes.hpp"
#include "tensor/linalg/panel_kernel.hpp"

namespace pw::PW_GEMM {
namespace {

/// Computes Bᵀ x in place.
void transform_input(Vector& a, Vector& b, Vector& c, Vector& d) {
  const Vector first = a - c, second = b + c, third = c - b, fourth = b - d;
  a = first, b = second, c = third, d = fourth;
}

void input(const WinogradInput& t) {
  for (std::int64_t i = 0; i < t.groups * kPanelGroup; i += kLanes) {
    Vector x[kWinogradPoints];
#pragma GCC unroll 16
    for (int p = 0; p < kWinogradPoints; ++p) x[p] = load(t.elements[p] + i);
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) transform_input(x[p], x[p + 4], x[p + 8], x[p + 12]);
#pragma GCC unroll 4
    for (int p = 0; p < 16; p += 4) transform_input(x[p], x[p + 1], x[p + 2], x[p + 3]);
    float* const to = t.points + i / kPanelGroup * t.group_step + i % kPanelGroup;
#pragma GCC unroll 16
    for (int p = 0; p < kWinogradPoints; ++p) store(to + p * t.point_step, x[p]);
  }
}

bool output(const WinogradOutput& t) {
  Vector check{};  // x - x is 0 for finite x, and NaN otherwise
  for (std::int64_t i = 0; i < t.channels; i += kLanes) {
    Vector y[2][4];
    // Aᵀ m, then (Aᵀ m) A.
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) {
      const float* const from = t.points + i + p * t.point_step;
      const Vector a = load(from), b = load(from + 4 * t.point_step),
                   c = load(from + 8 * t.point_step), d = load(from + 12 * t.point_step);
      y[0][p] = a + b + c;
      y[1][p] = b - c - d;
    }
    const Vector bias = t.bias == nullptr ? Vector{} : load(t.bias + i);
#pragma GCC unroll 2
    for (int row = 0; row < 2; ++row) {
      Vector made[2] = {y[row][0] + y[row][1] + y[row][2] + bias,
                        y[row][1] - y[row][2] - y[row][3] + bias};
#pragma GCC unroll 2
      for (int column = 0; column < 2; ++column) {
        const int r = 2 * row + column;
        check += made[column] - made[column];
        if (t.others[0] != nullptr) made[column] += load(t.others[r] + i);
        if (t.relu) made[column] = made[column] < Vector{} ? Vector{} : made[column];
        store(t.results[r] + i, made[column]);
      }
    }
  }
  for (std::int64_t i = 0; i < kLanes; ++i)
    if (check[i] != 0) return false;
  return true;
}

}  // namespace

WinogradKernels winograd_kernels() { return {input, output}; }

}  // namespace pw::PW_GEMM
