// Convolutions whose groups have one channel, compiled per instruction set like gemm_kernel.hpp:
// of one channel's image, and of a row of places with all their channels. convolutions.cpp and
// cpu/packed.cpp select the variant.
#pragma once

#include <cstdint>

namespace pw {

/// Computes y += w · x for the kernel elements that are inside of x; all arrays are row-major.
/// Along axis i (rows first), place p and kernel element k read x at p · stride[i] - padding[i] + k
/// · dilation[i].
template <class Scalar>
struct ChannelConvolution {
  const Scalar* x;
  const Scalar* w;
  Scalar* y;
  std::int64_t in[2], out[2], kernel[2], stride[2], padding[2], dilation[2];
};

/// A row of the image, and the row of the kernel that reads it: [kernel][channels].
struct ChannelRow {
  const float *x, *w;
};
/// Computes y = bias + the sum of w · x over some rows, for a row of places. The channels of a
/// place are adjacent. Place p and kernel element k read x at p · stride - padding + k · dilation.
struct ChannelRows {
  const ChannelRow* rows;
  std::int64_t count;
  const float* bias;  ///< null: zeros
  float* y;
  std::int64_t channels, in, out, kernel, stride, padding, dilation;
  bool relu;  ///< clamp results to at least 0, last
};

namespace portable {
void convolve_channel(const ChannelConvolution<float>& c);
void convolve_channel(const ChannelConvolution<double>& c);
void convolve_rows(const ChannelRows& c);
}  // namespace portable
namespace avx2 {
void convolve_channel(const ChannelConvolution<float>& c);
void convolve_channel(const ChannelConvolution<double>& c);
void convolve_rows(const ChannelRows& c);
}  // namespace avx2
namespace avx512 {
void convolve_channel(const ChannelConvolution<float>& c);
void convolve_channel(const ChannelConvolution<double>& c);
void convolve_rows(const ChannelRows& c);
}  // namespace avx512

}  // namespace pw
