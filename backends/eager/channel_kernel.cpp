// Compiled once per instruction set: PW_GEMM names the variant, as in gemm_kernel.cpp.
#include "backends/eager/channel_kernel.hpp"

namespace pw::PW_GEMM {
namespace {

struct Places {
  std::int64_t begin, end;
};

/// Positions of an axis at which element k of the kernel is inside the image.
template <class Scalar>
Places places_of(const ChannelConvolution<Scalar>& c, int axis, std::int64_t k) {
  const std::int64_t at = k * c.dilation[axis] - c.padding[axis], step = c.stride[axis];
  const std::int64_t begin = at >= 0 ? 0 : (-at + step - 1) / step;
  const std::int64_t end = at >= c.in[axis] ? 0 : (c.in[axis] - at + step - 1) / step;
  return {begin, end < c.out[axis] ? end : c.out[axis]};
}

template <class Scalar>
void add_row(Scalar factor, const Scalar* __restrict x, std::int64_t step, std::int64_t n,
             Scalar* __restrict y) {
  if (step == 1) {
    for (std::int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
  } else if (step == 2) {
    for (std::int64_t i = 0; i < n; ++i) y[i] += factor * x[2 * i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] += factor * x[i * step];
  }
}

template <class Scalar>
void convolve(const ChannelConvolution<Scalar>& c) {
  for (std::int64_t k = 0; k < c.kernel[0]; ++k) {
    const Places rows = places_of(c, 0, k);
    for (std::int64_t l = 0; l < c.kernel[1]; ++l) {
      const Places columns = places_of(c, 1, l);
      const std::int64_t from = columns.begin * c.stride[1] - c.padding[1] + l * c.dilation[1];
      for (std::int64_t row = rows.begin; row < rows.end && columns.begin < columns.end; ++row) {
        const std::int64_t source = row * c.stride[0] - c.padding[0] + k * c.dilation[0];
        add_row(c.w[k * c.kernel[1] + l], c.x + source * c.in[1] + from, c.stride[1],
                columns.end - columns.begin, c.y + row * c.out[1] + columns.begin);
      }
    }
  }
}

}  // namespace

void convolve_channel(const ChannelConvolution<float>& c) { convolve(c); }
void convolve_channel(const ChannelConvolution<double>& c) { convolve(c); }

}  // namespace pw::PW_GEMM
