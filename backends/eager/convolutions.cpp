// Matrix products with columns of the image's elements under the kernel (Chellapilla, Puri and
// Simard, 2006), built for one block of places at a time. Groups of one channel are summed row by
// row instead. Computes in f32, or in f64 for f64.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/eager/channel_kernel.hpp"
#include "backends/eager/kernels.hpp"
#include "backends/windows.hpp"
#include "tensor/instruction_set.hpp"
#include "tensor/linalg/choices.hpp"
#include "tensor/linalg/gemm.hpp"
#include "tensor/linalg/torch_kernels.hpp"
#include "tensor/parallel.hpp"

namespace pw::eager {
namespace {

constexpr std::int64_t kColumnBytes = 1 << 19, kProductsWorthAThread = 1 << 18;

/// Calls work(begin, end) on ranges of elements that are converted.
template <class Work>
void over_elements(std::int64_t count, const Work& work) {
  constexpr std::int64_t kElementsWorthAThread = 1 << 15;
  parallel_for(count, kElementsWorthAThread, work, kElementsWorthAThread);
}

/// All elements in the compute type; the operand's own if they already have it.
template <class T>
class Elements {
 public:
  explicit Elements(const Array& x) : packed_(contiguous(x)) {
    if (packed_.dtype == kStoredAs<T>) {
      data_ = reinterpret_cast<const T*>(packed_.data);
      return;
    }
    own_ = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(packed_.count()));
    over_elements(packed_.count(), [&](std::int64_t begin, std::int64_t end) {
      load_run(packed_.dtype, packed_.at(begin), 1, end - begin, own_.get() + begin);
    });
    data_ = own_.get();
  }
  [[nodiscard]] const T* data() const { return data_; }

 private:
  Array packed_;
  std::unique_ptr<T[]> own_;
  const T* data_ = nullptr;
};

/// A result filled in the compute type and rounded if its dtype differs.
template <class T>
class Filled {
 public:
  explicit Filled(Array& y) : y_(y) {
    if (y.dtype != kStoredAs<T>)
      own_ = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(y.count()));
  }
  [[nodiscard]] T* data() { return own_ ? own_.get() : reinterpret_cast<T*>(y_.data); }
  Status done() {
    if (!own_) return {};
    over_elements(y_.count(), [&](std::int64_t begin, std::int64_t end) {
      store_run(y_.dtype, y_.at(begin), 1, end - begin, own_.get() + begin);
    });
    return {};
  }

 private:
  Array& y_;
  std::unique_ptr<T[]> own_;
};

template <class T>
Matrix dense(const T* data, std::int64_t rows, std::int64_t columns, std::int64_t step) {
  return {kStoredAs<T>, reinterpret_cast<const std::byte*>(data), rows, columns, step, 1};
}
template <class T>
Matrix dense_transposed(const T* data, std::int64_t rows, std::int64_t columns, std::int64_t step) {
  return {kStoredAs<T>, reinterpret_cast<const std::byte*>(data), rows, columns, 1, step};
}

/// Returns true if the columns of im2col are the image itself.
bool is_pointwise(const Window& w) {
  return w.kernel_count() == 1 && w.in == w.out && w.stride == Axes{1, 1, 1} &&
         w.padding == Axes{0, 0, 0};
}

/// visit(row of places, image offset, step, [begin, end) of the row that is inside) for one tap and
/// the rows of places that have some of [first, last). The others are in the padding: visit gets
/// begin == end.
template <class Visit>
void over_tap(const Window& w, const Axes& tap, std::int64_t first, std::int64_t last,
              const Visit& visit) {
  const std::int64_t width = w.out[2];
  const auto [from, to] = w.inside(2, tap[2]);
  for (std::int64_t row = first / width; row * width < last; ++row) {
    const std::int64_t begin = std::max<std::int64_t>(first - row * width, 0),
                       end = std::min(last - row * width, width);
    const std::int64_t z = w.source(0, row / w.out[1], tap[0]),
                       y = w.source(1, row % w.out[1], tap[1]);
    const bool in = z >= 0 && z < w.in[0] && y >= 0 && y < w.in[1];
    const std::int64_t seen = in ? std::clamp(from, begin, end) : begin,
                       seen_end = in ? std::clamp(to, seen, end) : begin;
    const std::int64_t offset = (z * w.in[1] + y) * w.in[2] + w.source(2, 0, tap[2]);
    visit(row * width - first, offset, begin, end, seen, seen_end);
  }
}

template <class Visit>
void over_taps(const Window& w, const Visit& visit) {
  std::int64_t number = 0;
  for (std::int64_t z = 0; z < w.kernel[0]; ++z)
    for (std::int64_t y = 0; y < w.kernel[1]; ++y)
      for (std::int64_t x = 0; x < w.kernel[2]; ++x) visit(Axes{z, y, x}, number++);
}

/// Columns [first, last) of some channels: one row per channel and tap, one column per place.
template <class T>
void make_columns(const Window& w, const T* image, std::int64_t channels, std::int64_t first,
                  std::int64_t last, T* columns) {
  const std::int64_t step = w.stride[2];
  for (std::int64_t c = 0; c < channels; ++c, image += w.in_count()) {
    over_taps(w, [&](const Axes& tap, std::int64_t) {
      over_tap(w, tap, first, last,
               [&](std::int64_t at, std::int64_t offset, std::int64_t begin, std::int64_t end,
                   std::int64_t seen, std::int64_t seen_end) {
                 T* const out = columns + at;
                 std::fill(out + begin, out + seen, T(0));
                 const T* const source = image + offset;
                 if (step == 1) {
                   std::copy(source + seen, source + seen_end, out + seen);
                 } else {
                   for (std::int64_t i = seen; i < seen_end; ++i) out[i] = source[i * step];
                 }
                 std::fill(out + seen_end, out + end, T(0));
               });
      columns += last - first;
    });
  }
}

/// The transpose: adds columns to the elements that they came from.
template <class T>
void add_columns(const Window& w, const T* columns, std::int64_t channels, std::int64_t first,
                 std::int64_t last, T* image) {
  const std::int64_t step = w.stride[2];
  for (std::int64_t c = 0; c < channels; ++c, image += w.in_count()) {
    over_taps(w, [&](const Axes& tap, std::int64_t) {
      over_tap(w, tap, first, last,
               [&](std::int64_t at, std::int64_t offset, std::int64_t, std::int64_t,
                   std::int64_t seen, std::int64_t seen_end) {
                 T* const target = image + offset;
                 for (std::int64_t i = seen; i < seen_end; ++i) target[i * step] += columns[at + i];
               });
      columns += last - first;
    });
  }
}

/// Returns the number of places of a plane processed at once: all, or about equal parts whose
/// columns fit a cache.
template <class T>
std::int64_t block_of(std::int64_t places, std::int64_t taps) {
  const std::int64_t most = std::max<std::int64_t>(
      256, kColumnBytes / static_cast<std::int64_t>(sizeof(T)) / std::max<std::int64_t>(taps, 1));
  const std::int64_t parts = (places + most - 1) / most;
  return parts <= 1 ? std::max<std::int64_t>(places, 1) : (places + parts - 1) / parts;
}

template <class T>
struct Planes {
  const T *x, *w, *bias;
  T* y;
};

/// Computes places [first, last) of one image and group.
template <class T>
void convolve_block(const Convolution& c, const Planes<T>& p, std::int64_t image,
                    std::int64_t group, std::int64_t first, std::int64_t last,
                    std::vector<T>& columns, std::vector<T>& values) {
  const std::int64_t places = c.window.out_count(), count = last - first, taps = c.taps();
  const T* const x = p.x + (image * c.groups + group) * c.channels * c.window.in_count();
  T* const y = p.y + (image * c.groups + group) * c.outputs * places;
  Matrix b = dense(x + first, taps, count, places);
  if (!is_pointwise(c.window)) {
    columns.resize(static_cast<std::size_t>(taps * count));
    make_columns(c.window, x, c.channels, first, last, columns.data());
    b = dense(columns.data(), taps, count, count);
  }
  const bool whole = count == places;
  if (!whole) values.resize(static_cast<std::size_t>(c.outputs * count));
  T* const product = whole ? y : values.data();
  gemm(dense(p.w + group * c.outputs * taps, c.outputs, taps, taps), b, product);
  for (std::int64_t o = 0; o < c.outputs; ++o) {
    const T add = p.bias == nullptr ? T(0) : p.bias[group * c.outputs + o];
    T* const to = y + o * places + first;
    const T* const from = product + o * count;
    if (p.bias != nullptr) {
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] + add;
    } else if (!whole) {
      std::copy(from, from + count, to);
    }
  }
}

template <class T>
void convolve(const Convolution& c, const Planes<T>& p) {
  const std::int64_t places = c.window.out_count(), block = block_of<T>(places, c.taps()),
                     blocks = (places + block - 1) / block;
  const std::int64_t work = c.outputs * c.taps() * std::min(block, places) + 1;
  parallel_for(c.batch * c.groups * blocks, 1 + kProductsWorthAThread / work,
               [&](std::int64_t begin, std::int64_t end) {
                 std::vector<T> columns, values;
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t plane = i / blocks, first = i % blocks * block;
                   convolve_block(c, p, plane / c.groups, plane % c.groups, first,
                                  std::min(first + block, places), columns, values);
                 }
               });
}

/// Computes a group of one channel plane by plane.
template <class T>
void convolve_planes(const Convolution& c, const T* x, const T* w, T bias, T* y) {
  const Window& g = c.window;
  const auto convolve =
      for_this_machine<void(const ChannelConvolution<T>&)>(PW_VARIANTS(convolve_channel));
  std::fill(y, y + g.out_count(), bias);
  for (std::int64_t place = 0; place < g.out[0]; ++place) {
    for (std::int64_t tap = 0; tap < g.kernel[0]; ++tap) {
      const std::int64_t plane = g.source(0, place, tap);
      if (plane < 0 || plane >= g.in[0]) continue;
      convolve({x + plane * g.in[1] * g.in[2],
                w + tap * g.kernel[1] * g.kernel[2],
                y + place * g.out[1] * g.out[2],
                {g.in[1], g.in[2]},
                {g.out[1], g.out[2]},
                {g.kernel[1], g.kernel[2]},
                {g.stride[1], g.stride[2]},
                {g.padding[1], g.padding[2]},
                {g.dilation[1], g.dilation[2]}});
    }
  }
}

template <class T>
void convolve_channels(const Convolution& c, const Planes<T>& p) {
  const std::int64_t outputs = c.groups * c.outputs;
  const std::int64_t work = c.window.out_count() * c.window.kernel_count() + 1;
  parallel_for(c.batch * outputs, 1 + kProductsWorthAThread / work,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t output = i % outputs;
                   convolve_planes(c, p.x + i / c.outputs * c.window.in_count(),
                                   p.w + output * c.window.kernel_count(),
                                   p.bias == nullptr ? T(0) : p.bias[output],
                                   p.y + i * c.window.out_count());
                 }
               });
}

bool has_bias(const Call& call) { return call.operands.size() > 2 && call.operands[2] != nullptr; }

template <class T>
void convolve_by_ours(const Convolution& c, const Planes<T>& planes) {
  if (c.channels == 1 && c.groups > 1) {
    convolve_channels(c, planes);
  } else {
    convolve(c, planes);
  }
}

KernelClass class_of(const Convolution& c, std::string_view op) {
  const Window& g = c.window;
  return {op,
          {c.batch * c.groups, c.channels, c.outputs, g.out_count(), g.kernel_count()},
          {g.in == g.out     ? ""
           : g.stride[2] > 1 ? "with stride"
                             : "other extents",
           g.dilation[2] > 1 ? "dilated" : ""},
          c.batch * c.groups * c.outputs * g.out_count() * c.taps()};
}

template <class T>
Status run_convolution(Call& call) {
  Array& y = call.result();
  const Convolution c =
      convolution_of(call, call.operand(0).extents, call.operand(1).extents, y.extents);
  const Elements<T> x(call.operand(0)), w(call.operand(1));
  const Elements<T> bias(has_bias(call) ? call.operand(2) : make_array(kStoredAs<T>, {0}));
  Filled<T> out(y);
  const Planes<T> planes{x.data(), w.data(), has_bias(call) ? bias.data() : nullptr, out.data()};
  convolve_by_ours(c, planes);
  return out.done();
}

/// Convolves f32 or bf16 by oneDNN or by our kernels, whichever is faster. Ours compute bf16 in
/// f32, depthwise convolutions, and products of pixels without a copy.
Status convolve_fastest(Call& call) {
  static constexpr std::array<std::string_view, 2> kLentFirst{"oneDNN", kOwnKernel},
      kOwnFirst{kOwnKernel, "oneDNN"};
  const Array &image = call.operand(0), &weight = call.operand(1);
  const Convolution c = convolution_of(call, image.extents, weight.extents, call.extents[0]);
  const Window& g = c.window;
  const bool is_f32 = call.operand_dtype(0) == DType::f32;
  const auto& kernels =
      is_f32 && c.channels > 1 && (g.kernel_count() > 1 || g.in != g.out) ? kLentFirst : kOwnFirst;
  Status status;
  std::optional<Array> lent;
  const auto run = [&](std::size_t i) {
    lent.reset();
    if (kernels[i] == kOwnKernel) {
      status = run_convolution<float>(call);
      return true;
    }
    if (image.dtype != call.operand_dtype(0)) return false;
    std::optional<Array> bias;
    if (has_bias(call)) bias = contiguous(call.operand(2));
    lent = lent_convolution(c, contiguous(image), contiguous(weight), bias ? &*bias : nullptr);
    return lent.has_value();
  };
  run_fastest(class_of(c, is_f32 ? "convolution of f32" : "convolution of bf16"), kernels, run);
  if (!lent) return status;
  lent->extents = call.extents[0];
  lent->strides = row_major(lent->extents);
  call.set_result(std::move(*lent));
  return {};
}

Status convolution(Call& call) {
  const DType dtype = call.operand_dtype(0);
  if (dtype == DType::bf16 || dtype == DType::f32) return convolve_fastest(call);
  return dtype == DType::f64 ? run_convolution<double>(call) : run_convolution<float>(call);
}

/// Computes one image and group of the transpose: x from y.
template <class T>
void unconvolve_plane(const Convolution& c, const T* y, const T* w, T* x, std::vector<T>& columns) {
  const std::int64_t places = c.window.out_count(), taps = c.taps(),
                     block = block_of<T>(places, taps);
  for (std::int64_t first = 0; first < places; first += block) {
    const std::int64_t count = std::min(block, places - first);
    columns.resize(static_cast<std::size_t>(taps * count));
    gemm(dense_transposed(w, taps, c.outputs, taps), dense(y + first, c.outputs, count, places),
         columns.data());
    add_columns(c.window, columns.data(), c.channels, first, first + count, x);
  }
}

template <class T>
Status run_transposed_convolution(Call& call) {
  Array& x = call.result();
  const Convolution c =
      convolution_of(call, x.extents, call.operand(1).extents, call.operand(0).extents);
  const Elements<T> y(call.operand(0)), w(call.operand(1));
  const Elements<T> bias(has_bias(call) ? call.operand(2) : make_array(kStoredAs<T>, {0}));
  Filled<T> out(x);
  const std::int64_t input = c.channels * c.window.in_count(),
                     result = c.outputs * c.window.out_count();
  parallel_for(c.batch * c.groups, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> columns;
    for (std::int64_t i = begin; i < end; ++i) {
      T* const plane = out.data() + i * input;
      for (std::int64_t channel = 0; channel < c.channels; ++channel)
        std::fill_n(plane + channel * c.window.in_count(), c.window.in_count(),
                    has_bias(call) ? bias.data()[i % c.groups * c.channels + channel] : T(0));
      unconvolve_plane(c, y.data() + i * result, w.data() + i % c.groups * c.outputs * c.taps(),
                       plane, columns);
    }
  });
  return out.done();
}
Status transposed_convolution(Call& call) {
  return call.operand_dtype(0) == DType::f64 ? run_transposed_convolution<double>(call)
                                             : run_transposed_convolution<float>(call);
}

template <class T>
struct WeightScratch {
  std::vector<T> columns, product, total;
};

/// Computes the weights of some channels of one group: products of y with their columns, over all
/// images.
template <class T>
void weight_gradient(const Convolution& c, const Planes<T>& p, std::int64_t group,
                     std::int64_t channel, std::int64_t channels, WeightScratch<T>& s) {
  const std::int64_t places = c.window.out_count(), taps = channels * c.window.kernel_count(),
                     block = block_of<T>(places, taps);
  s.total.assign(static_cast<std::size_t>(c.outputs * taps), T(0));
  s.product.resize(s.total.size());
  for (std::int64_t image = 0; image < c.batch; ++image) {
    const std::int64_t plane = image * c.groups + group;
    const T* const x = p.x + (plane * c.channels + channel) * c.window.in_count();
    for (std::int64_t first = 0; first < places; first += block) {
      const std::int64_t count = std::min(block, places - first);
      s.columns.resize(static_cast<std::size_t>(taps * count));
      make_columns(c.window, x, channels, first, first + count, s.columns.data());
      gemm(dense(p.bias + plane * c.outputs * places + first, c.outputs, count, places),
           dense_transposed(s.columns.data(), count, taps, count), s.product.data());
      for (std::size_t i = 0; i < s.total.size(); ++i) s.total[i] += s.product[i];
    }
  }
  for (std::int64_t o = 0; o < c.outputs; ++o)
    std::copy_n(s.total.data() + o * taps, taps,
                p.y + (group * c.outputs + o) * c.taps() + channel * c.window.kernel_count());
}

template <class T>
Status run_weight_gradient(Call& call) {
  Array& w = call.result();
  const Convolution c =
      convolution_of(call, call.operand(1).extents, w.extents, call.operand(0).extents);
  const Elements<T> y(call.operand(0)), x(call.operand(1));
  Filled<T> out(w);
  // y replaces a bias.
  const Planes<T> planes{x.data(), nullptr, y.data(), out.data()};
  constexpr std::int64_t kChannels = 32;  // at once
  const std::int64_t parts = (c.channels + kChannels - 1) / kChannels;
  parallel_for(c.groups * parts, 1, [&](std::int64_t begin, std::int64_t end) {
    WeightScratch<T> scratch;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t channel = i % parts * kChannels;
      weight_gradient(c, planes, i / parts, channel, std::min(kChannels, c.channels - channel),
                      scratch);
    }
  });
  return out.done();
}
Status convolution_weight_gradient(Call& call) {
  return call.operand_dtype(0) == DType::f64 ? run_weight_gradient<double>(call)
                                             : run_weight_gradient<float>(call);
}

constexpr KernelEntry kConvolutions[] = {
    {Primitive::convolution, convolution},
    {Primitive::transposed_convolution, transposed_convolution},
    {Primitive::convolution_weight_gradient, convolution_weight_gradient}};

}  // namespace

KernelTable convolutions() { return kConvolutions; }

}  // namespace pw::eager
