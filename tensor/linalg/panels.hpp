// Matrix products with a right operand that is packed once, in f32: rows of pixels, so that a
// convolution over channels that stand together is one of them too, and what follows it at once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/linalg/gemm.hpp"
#include "tensor/linalg/panel_kernel.hpp"
#include "tensor/window.hpp"

namespace pw {

/// Those for this machine's instruction set.
[[nodiscard]] const PanelKernels& panel_kernels();
/// Memory of whole cache lines, not initialised.
[[nodiscard]] std::shared_ptr<float> aligned_floats(std::int64_t count);

/// Rows of a product that are made at once.
struct Tile {
  std::int64_t row, rows;
};
/// Tiles of about equal heights, for rows from `first` on.
[[nodiscard]] std::vector<Tile> tiles_of(std::int64_t first, std::int64_t rows);

/// A matrix, [columns / panel][depth][panel], with zeros where it ends in the midst of a panel or
/// of kPanelGroup rows.
struct Panels {
  std::int64_t depth = 0, columns = 0;
  std::shared_ptr<float> data;
  [[nodiscard]] std::int64_t padded_depth() const;
  [[nodiscard]] std::int64_t count() const;  ///< of panels
  [[nodiscard]] const float* panel(std::int64_t i) const;
};

/// Of a matrix of any dtype, row by row or column by column.
[[nodiscard]] Panels panels_of(const Matrix& b);
/// Of the weights of a convolution of one group, [outputs, channels, kernel] row-major.
[[nodiscard]] Panels panels_of(const Convolution& c, const float* w);

/// The rows of the left operand: the window's places in their order, an image after another; of
/// each the elements under the kernel, the channels of an element together. Elements are `step`
/// apart.
struct Pixels {
  const float* data = nullptr;
  std::int64_t step = 0, channels = 0, batch = 1;
  Window window;
  [[nodiscard]] std::int64_t count() const { return batch * window.out_count(); }
};
/// The rows of a matrix whose columns stand together.
[[nodiscard]] Pixels rows_of(const float* data, std::int64_t rows, std::int64_t columns,
                             std::int64_t step);

enum class Then { nothing, relu, gelu };
/// What a product is followed by, in this order.
struct Finish {
  const float* bias = nullptr;   ///< a number a column
  const float* other = nullptr;  ///< a row a row, as dense as the result
  Then then = Then::nothing;
};

/// y (row-major, a.count() × b.columns) = a · b, finished.
void multiply(const Pixels& a, const Panels& b, const Finish& finish, float* y);

}  // namespace pw
