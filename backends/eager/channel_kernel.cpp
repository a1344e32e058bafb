// Compiled once per instruction set: PW_GEMM names the variant, as in gemm_kernel.cpp.
#include "backends/eager/channel_kernel.hpp"

#include "tensor/linalg/lanes.hpp"

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

constexpr std::int64_t kPlaces = 4, kVectors = 2;  // of a block whose sums stay in registers

/// Computes some neighbouring places for the vectors of channels from `channel` on. All of the
/// kernel elements [begin, end) are inside the image.
template <std::int64_t places, std::int64_t vectors>
void sum_block(const ChannelRows& c, std::int64_t place, std::int64_t channel, std::int64_t begin,
               std::int64_t end) {
  Vector sums[places][vectors];
  for (std::int64_t p = 0; p < places; ++p)
    for (std::int64_t v = 0; v < vectors; ++v)
      sums[p][v] = c.bias == nullptr ? Vector{} : load(c.bias + channel + v * kLanes);
  const std::int64_t step = c.stride * c.channels;
  for (std::int64_t row = 0; row < c.count; ++row) {
    const float* const x = c.rows[row].x + (place * c.stride - c.padding) * c.channels + channel;
    const float* const w = c.rows[row].w + channel;
    for (std::int64_t k = begin; k < end; ++k) {
      const float* const from = x + k * c.dilation * c.channels;
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < vectors; ++v) {
        const Vector weight = load(w + k * c.channels + v * kLanes);
#pragma GCC unroll 4
        for (std::int64_t p = 0; p < places; ++p)
          sums[p][v] += weight * load(from + p * step + v * kLanes);
      }
    }
  }
  for (std::int64_t p = 0; p < places; ++p)
    for (std::int64_t v = 0; v < vectors; ++v) {
      Vector sum = sums[p][v];
      if (c.relu) sum = sum < Vector{} ? Vector{} : sum;  // NaN stays NaN
      store(c.y + (place + p) * c.channels + channel + v * kLanes, sum);
    }
}

/// Computes all places for these channels: those at the border one by one, the others in blocks.
template <std::int64_t vectors>
void sum_channels(const ChannelRows& c, std::int64_t channel) {
  const std::int64_t reach = (c.kernel - 1) * c.dilation;
  const auto inside = [&](std::int64_t place) {
    const std::int64_t first = place * c.stride - c.padding;
    return first >= 0 && first + reach < c.in;
  };
  for (std::int64_t place = 0; place < c.out;) {
    if (place + kPlaces <= c.out && inside(place) && inside(place + kPlaces - 1)) {
      sum_block<kPlaces, vectors>(c, place, channel, 0, c.kernel);
      place += kPlaces;
      continue;
    }
    const std::int64_t first = place * c.stride - c.padding;
    std::int64_t begin = 0, end = c.kernel;
    while (begin < end && first + begin * c.dilation < 0) ++begin;
    while (end > begin && first + (end - 1) * c.dilation >= c.in) --end;
    sum_block<1, vectors>(c, place++, channel, begin, end);
  }
}

/// Fewer channels than a vector has lanes.
void sum_few_channels(const ChannelRows& c) {
  for (std::int64_t place = 0; place < c.out; ++place)
    for (std::int64_t channel = 0; channel < c.channels; ++channel) {
      float sum = c.bias == nullptr ? 0.0f : c.bias[channel];
      for (std::int64_t row = 0; row < c.count; ++row)
        for (std::int64_t k = 0; k < c.kernel; ++k) {
          const std::int64_t at = place * c.stride - c.padding + k * c.dilation;
          if (at >= 0 && at < c.in)
            sum +=
                c.rows[row].w[k * c.channels + channel] * c.rows[row].x[at * c.channels + channel];
        }
      c.y[place * c.channels + channel] = c.relu && sum < 0 ? 0.0f : sum;
    }
}

}  // namespace

void convolve_rows(const ChannelRows& c) {
  if (c.channels < kLanes) return sum_few_channels(c);
  std::int64_t channel = 0;
  for (; channel + kVectors * kLanes <= c.channels; channel += kVectors * kLanes)
    sum_channels<kVectors>(c, channel);
  for (; channel < c.channels; channel += kLanes)  // the last vector may repeat some channels
    sum_channels<1>(c, channel + kLanes <= c.channels ? channel : c.channels - kLanes);
}

void convolve_channel(const ChannelConvolution<float>& c) { convolve(c); }
void convolve_channel(const ChannelConvolution<double>& c) { convolve(c); }

}  // namespace pw::PW_GEMM
