// f32 matrix products with a right operand that is packed once, and a fused epilogue. The left
// operand is a list of pixels, so a channels-last convolution is such a product as well (implicit
// im2col).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/linalg/gemm.hpp"
#include "tensor/linalg/panel_kernel.hpp"
#include "tensor/window.hpp"

namespace pw {

/// Returns the kernels for this machine's instruction set.
[[nodiscard]] const PanelKernels& panel_kernels();
/// Returns uninitialised memory of whole cache lines.
[[nodiscard]] std::shared_ptr<float> aligned_floats(std::int64_t count);

/// Rows of a product that are computed together.
struct Tile {
  std::int64_t row, rows;
};
/// Returns tiles of about equal height for the rows from `first` on.
[[nodiscard]] std::vector<Tile> tiles_of(std::int64_t first, std::int64_t rows);

/// A packed matrix, [columns / panel][depth][panel], padded with zeros to whole panels and whole
/// kPanelGroup rows.
struct Panels {
  std::int64_t depth = 0, columns = 0;
  std::shared_ptr<float> data;
  [[nodiscard]] std::int64_t padded_depth() const;
  [[nodiscard]] std::int64_t count() const;  ///< number of panels
  [[nodiscard]] const float* panel(std::int64_t i) const;
};

/// Packs a matrix of any dtype, stored by rows or by columns.
[[nodiscard]] Panels panels_of(const Matrix& b);
/// Packs the weights of a one-group convolution, [outputs, channels, kernel] row-major.
[[nodiscard]] Panels panels_of(const Convolution& c, const float* w);

/// Rows of the left operand: the window's places in order, image after image. A row holds the
/// elements under the kernel, with the channels of an element adjacent. Elements are `step` apart.
struct Pixels {
  const float* data = nullptr;
  std::int64_t step = 0, channels = 0, batch = 1;
  Window window;
  [[nodiscard]] std::int64_t count() const { return batch * window.out_count(); }
};
/// Returns the rows of a matrix with contiguous columns.
[[nodiscard]] Pixels rows_of(const float* data, std::int64_t rows, std::int64_t columns,
                             std::int64_t step);

enum class Then { nothing, relu, gelu };
/// The epilogue of a product, applied in this order.
struct Finish {
  const float* bias = nullptr;   ///< one number for each column
  const float* other = nullptr;  ///< one row for each row, stored as densely as the result
  Then then = Then::nothing;
};

/// Computes y (row-major, a.count() × b.columns) = a · b and applies the epilogue.
void multiply(const Pixels& a, const Panels& b, const Finish& finish, float* y);

}  // namespace pw
