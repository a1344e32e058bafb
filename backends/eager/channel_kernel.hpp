// Two-dimensional convolution of one channel, compiled per instruction set like gemm_kernel.hpp;
// convolutions.cpp selects the variant.
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

namespace portable {
void convolve_channel(const ChannelConvolution<float>& c);
void convolve_channel(const ChannelConvolution<double>& c);
}  // namespace portable
namespace avx2 {
void convolve_channel(const ChannelConvolution<float>& c);
void convolve_channel(const ChannelConvolution<double>& c);
}  // namespace avx2
namespace avx512 {
void convolve_channel(const ChannelConvolution<float>& c);
void convolve_channel(const ChannelConvolution<double>& c);
}  // namespace avx512

}  // namespace pw
