// A convolution of one channel over two axes, by instruction set, as in gemm_kernel.hpp;
// convolutions.cpp chooses.
#pragma once

#include <cstdint>

namespace pw {

/// y += w · x by places, for kernel elements that are inside of x; all row-major. Of axis i, rows
/// first: place p and element k of the kernel read x at p · stride[i] - padding[i] + k ·
/// dilation[i].
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
