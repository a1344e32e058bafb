// Computes plane by plane: f64 in f64, integers in int64, others in f32.
#include "backends/windows.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "backends/eager/kernels.hpp"
#include "tensor/parallel.hpp"

namespace pw::eager {
namespace {

constexpr std::int64_t kElementsWorthAThread = 1 << 14;

/// Calls work(plane, its elements, those of the result) for each plane of the first operand: a
/// block of all last dims. Operands and results are row-major.
template <class T, class Work>
Status over_planes(const Array& x, const Array& y, std::int64_t in, std::int64_t out,
                   const Work& work) {
  const Array from = contiguous(x);
  const std::int64_t planes = in > 0 ? from.count() / in : out > 0 ? y.count() / out : 0;
  const bool reads = from.dtype == kStoredAs<T>, writes = y.dtype == kStoredAs<T>;
  parallel_for(planes, 1 + kElementsWorthAThread / (in + out + 1),
               [&](std::int64_t begin, std::int64_t end) {
                 std::vector<T> given(static_cast<std::size_t>(reads ? 0 : in)),
                     made(static_cast<std::size_t>(writes ? 0 : out));
                 for (std::int64_t i = begin; i < end; ++i) {
                   if (!reads) load_run(from.dtype, from.at(i * in), 1, in, given.data());
                   work(i, reads ? reinterpret_cast<const T*>(from.at(i * in)) : given.data(),
                        writes ? reinterpret_cast<T*>(y.at(i * out)) : made.data());
                   if (!writes) store_run(y.dtype, y.at(i * out), 1, out, made.data());
                 }
               });
  return {};
}

/// Calls with the compute type of the first operand's elements.
template <class Run>
Status in_compute_type(const Call& call, const Run& run) {
  const DType dtype = call.operand_dtype(0);
  if (!is_float(dtype)) return run(std::int64_t{});
  return dtype == DType::f64 ? run(double{}) : run(float{});
}

/// Returns the taps of an axis that are inside at a place: the first, and the one after the last.
std::pair<std::int64_t, std::int64_t> taps_inside(const Window& w, std::size_t axis,
                                                  std::int64_t place) {
  const std::int64_t at = w.source(axis, place, 0), step = w.dilation[axis];
  const std::int64_t first = at >= 0 ? 0 : (-at + step - 1) / step;
  const std::int64_t last = at >= w.in[axis] ? 0 : (w.in[axis] - at + step - 1) / step;
  return {first, std::min(last, w.kernel[axis])};
}

/// The largest elements so far of a row of windows, and the taps that gave them. NaN is largest.
template <class T>
class RowOfMaxima {
 public:
  explicit RowOfMaxima(std::int64_t places)
      : values_(static_cast<std::size_t>(places)), taps_(values_.size()) {}

  void start() { std::fill(taps_.begin(), taps_.end(), Tap(-1)); }

  /// Compares with the elements of one tap, every `stride`-th, at places [begin, end).
  void add(std::int64_t tap, const T* x, std::int64_t stride, std::int64_t begin,
           std::int64_t end) {
    if (stride == 1) return add_strided(tap, x, [](std::int64_t i) { return i; }, begin, end);
    if (stride == 2) return add_strided(tap, x, [](std::int64_t i) { return 2 * i; }, begin, end);
    add_strided(tap, x, [stride](std::int64_t i) { return stride * i; }, begin, end);
  }

  [[nodiscard]] T value(std::int64_t place) const {
    return values_[static_cast<std::size_t>(place)];
  }
  [[nodiscard]] std::int64_t tap(std::int64_t place) const {
    return taps_[static_cast<std::size_t>(place)];
  }

 private:
  using Tap = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;  // for vectors

  template <class Offset>
  void add_strided(std::int64_t tap, const T* x, const Offset& offset, std::int64_t begin,
                   std::int64_t end) {
    T* const values = values_.data();
    Tap* const taps = taps_.data();
    for (std::int64_t i = begin; i < end; ++i) {
      const T now = x[offset(i)];
      const bool larger = (taps[i] < 0) | (now > values[i]) | (now != now);
      values[i] = larger ? now : values[i];
      taps[i] = larger ? static_cast<Tap>(tap) : taps[i];
    }
  }

  std::vector<T> values_;
  std::vector<Tap> taps_;
};

/// Computes one plane of max_pool: the largest elements, and their indices.
template <class T>
void max_pool_plane(const Window& w, const T* x, T* out, std::int64_t* at) {
  RowOfMaxima<T> row(w.out[2]);
  for (std::int64_t pz = 0; pz < w.out[0]; ++pz)
    for (std::int64_t py = 0; py < w.out[1]; ++py) {
      const auto [z0, z1] = taps_inside(w, 0, pz);
      const auto [y0, y1] = taps_inside(w, 1, py);
      const auto start_of = [&](std::int64_t z, std::int64_t y) {
        return (w.source(0, pz, z) * w.in[1] + w.source(1, py, y)) * w.in[2];
      };
      row.start();
      for (std::int64_t z = z0; z < z1; ++z)
        for (std::int64_t y = y0; y < y1; ++y)
          for (std::int64_t i = 0; i < w.kernel[2]; ++i) {
            const auto [begin, end] = w.inside(2, i);
            row.add((z * w.kernel[1] + y) * w.kernel[2] + i, x + start_of(z, y) + w.source(2, 0, i),
                    w.stride[2], begin, end);
          }
      for (std::int64_t px = 0; px < w.out[2]; ++px, ++at, ++out) {
        const std::int64_t tap = row.tap(px), rest = tap / w.kernel[2];
        *out = row.value(px);
        *at = start_of(rest / w.kernel[1], rest % w.kernel[1]) + w.source(2, px, tap % w.kernel[2]);
      }
    }
}

template <class T>
Status run_max_pool(Call& call) {
  Array &y = call.result(0), &index = call.result(1);
  const Window w = window_of(call, call.dims("kernel"), call.operand(0).extents, y.extents);
  if (y.count() > 0 && w.has_padding_alone())
    return fail_call(call, "PW1203", "a window contains only padding");
  return over_planes<T>(
      call.operand(0), y, w.in_count(), w.out_count(), [&](std::int64_t plane, const T* x, T* out) {
        max_pool_plane(w, x, out, reinterpret_cast<std::int64_t*>(index.at(plane * w.out_count())));
      });
}
Status max_pool(Call& call) {
  return in_compute_type(call, [&](auto type) { return run_max_pool<decltype(type)>(call); });
}

template <class T>
Status run_max_unpool(Call& call) {
  const std::size_t axes = call.dims("size").size();
  const Array index = contiguous(call.operand(1));
  Array& x = call.result();
  const Axes from = last_axes(call.operand(0).extents, axes), to = last_axes(x.extents, axes);
  const std::int64_t in = from[0] * from[1] * from[2], out = to[0] * to[1] * to[2];
  for (std::int64_t i = 0; i < index.count(); ++i)
    if (const std::int64_t at = reinterpret_cast<const std::int64_t*>(index.data)[i];
        at < 0 || at >= out)
      return fail_call(call, "PW1204", fmt::format("index {} is outside {} elements", at, out));
  return over_planes<T>(call.operand(0), x, in, out, [&](std::int64_t plane, const T* y, T* sums) {
    const auto* at = reinterpret_cast<const std::int64_t*>(index.at(plane * in));
    std::fill(sums, sums + out, T(0));
    for (std::int64_t i = 0; i < in; ++i) sums[at[i]] += y[i];
  });
}
Status max_unpool(Call& call) {
  return call.operand_dtype(0) == DType::f64 ? run_max_unpool<double>(call)
                                             : run_max_unpool<float>(call);
}

/// Calls work(z, y, divisor) for the rows of windows of each place on the first two axes; the
/// divisor is that of a row of stretches of one element.
template <class Work>
void over_window_rows(const Means& m, const Work& work) {
  for (const Stretch& z : m.axes[0])
    for (const Stretch& y : m.axes[1]) work(z, y, z.count * y.count);
}

/// Calls work(first place) for each row of elements in windows.
template <class Work>
void over_rows_inside(const Means& m, const Stretch& z, const Stretch& y, const Work& work) {
  for (std::int64_t i = z.begin; i < z.end; ++i)
    for (std::int64_t j = y.begin; j < y.end; ++j) work((i * m.in[1] + j) * m.in[2]);
}

/// Adds a row of a window; in several lanes if it is long, so that vectors hold them.
template <class T>
T sum_of(const T* x, std::int64_t n) {
  constexpr std::int64_t kLanes = 16;
  T total = 0;
  if (n >= 2 * kLanes) {
    T lanes[kLanes] = {};
    const T* const end = x + n / kLanes * kLanes;
    for (; x < end; x += kLanes)
      for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += x[lane];
    for (const T lane : lanes) total += lane;
    n %= kLanes;
  }
  for (std::int64_t i = 0; i < n; ++i) total += x[i];
  return total;
}

std::int64_t count_of(const Axes& axes) { return axes[0] * axes[1] * axes[2]; }

/// Adds the rows of neighbouring windows, and then stretches of the sums, so that
/// vectors hold neighbours.
template <class T>
Status pooled_means(Call& call, const Means& m) {
  const std::int64_t in = count_of(m.in), out = count_of(m.out);
  return over_planes<T>(
      call.operand(0), call.results[0], in, out, [&](std::int64_t, const T* x, T* place) {
        std::vector<T> kept(static_cast<std::size_t>(m.in[2]));
        T* const sums = kept.data();
        over_window_rows(m, [&](const Stretch& z, const Stretch& y, std::int64_t count) {
          std::fill(kept.begin(), kept.end(), T(0));
          over_rows_inside(m, z, y, [&](std::int64_t row) {
            for (std::int64_t i = 0; i < m.in[2]; ++i) sums[i] += x[row + i];
          });
          const bool none = z.begin >= z.end || y.begin >= y.end;
          for (const Stretch& s : m.axes[2]) {
            const std::int64_t divisor = none ? 1 : m.divisor != 0 ? m.divisor : count * s.count;
            *place++ = sum_of(sums + s.begin, s.end - s.begin) / static_cast<T>(divisor);
          }
        });
      });
}

template <class T>
Status spread_means(Call& call, const Means& m) {
  const std::int64_t in = count_of(m.in), out = count_of(m.out);
  return over_planes<T>(
      call.operand(0), call.results[0], out, in, [&](std::int64_t, const T* place, T* x) {
        std::vector<T> kept(static_cast<std::size_t>(m.in[2]));
        T* const shares = kept.data();
        std::fill(x, x + in, T(0));
        over_window_rows(m, [&](const Stretch& z, const Stretch& y, std::int64_t count) {
          std::fill(kept.begin(), kept.end(), T(0));
          for (const Stretch& s : m.axes[2]) {
            const std::int64_t divisor = m.divisor != 0 ? m.divisor : count * s.count;
            const T share = *place++ / static_cast<T>(divisor);
            for (std::int64_t i = s.begin; i < s.end; ++i) shares[i] += share;
          }
          over_rows_inside(m, z, y, [&](std::int64_t row) {
            for (std::int64_t i = 0; i < m.in[2]; ++i) x[row + i] += shares[i];
          });
        });
      });
}

Status in_real_type(Call& call, const Means& m, Status (*wide)(Call&, const Means&),
                    Status (*narrow)(Call&, const Means&)) {
  return (call.operand_dtype(0) == DType::f64 ? wide : narrow)(call, m);
}
Status avg_pool(Call& call) {
  const Means m = means_of(call, call.operand(0).extents, call.result().extents);
  return in_real_type(call, m, pooled_means<double>, pooled_means<float>);
}
Status avg_unpool(Call& call) {
  const Means m = means_of(call, call.result().extents, call.operand(0).extents);
  return in_real_type(call, m, spread_means<double>, spread_means<float>);
}
Status adaptive_avg_pool(Call& call) {
  const Means m =
      adaptive_means_of(call.dims("size").size(), call.operand(0).extents, call.result().extents);
  return in_real_type(call, m, pooled_means<double>, pooled_means<float>);
}
Status adaptive_avg_unpool(Call& call) {
  const Means m =
      adaptive_means_of(call.dims("size").size(), call.result().extents, call.operand(0).extents);
  return in_real_type(call, m, spread_means<double>, spread_means<float>);
}

/// Blends b into a where a sample is between two elements.
template <class T>
void blend(const T* a, const T* b, double share, std::int64_t n, T* to) {
  const T more = static_cast<T>(share), less = T(1) - more;
  for (std::int64_t i = 0; i < n; ++i) to[i] = less * a[i] + more * b[i];
}

/// The rows of an image sampled along its last axis. It keeps the last ones, because rows of the
/// result that follow each other read the same.
template <class T>
class SampledRows {
 public:
  SampledRows(const std::vector<AxisSample>& samples, const Axes& in, bool linear)
      : samples_(samples), in_(in), linear_(linear) {
    for (Row& row : rows_) row.elements.resize(samples.size());
  }
  /// Starts with another image.
  void begin(const T* image) {
    image_ = image;
    for (Row& row : rows_) row.number = -1;
  }
  const T* at(std::int64_t plane, std::int64_t line) {
    const std::int64_t number = plane * in_[1] + line;
    Row& row = rows_[static_cast<std::size_t>(plane % 2 * 2 + line % 2)];
    if (row.number != number) sample(image_ + number * in_[2], row.elements.data());
    row.number = number;
    return row.elements.data();
  }

 private:
  struct Row {
    std::int64_t number = -1;
    std::vector<T> elements;
  };
  void sample(const T* from, T* to) const {
    for (const AxisSample& s : samples_) {
      const T share = static_cast<T>(s.share);
      *to++ = !linear_ || s.first == s.second
                  ? from[s.first]
                  : (T(1) - share) * from[s.first] + share * from[s.second];
    }
  }

  const std::vector<AxisSample>& samples_;
  const Axes in_;
  const bool linear_;
  const T* image_ = nullptr;
  std::array<Row, 4> rows_;
};

template <class T>
Status run_upsample(Call& call, bool linear) {
  const Array& x = call.operand(0);
  Array& y = call.result();
  const std::size_t axes = sampled_axes(call);
  const auto samples =
      samples_of(call, x.extents, y.extents, linear, call.operand_dtype(0) == DType::f64);
  const Axes in = last_axes(x.extents, axes), out = last_axes(y.extents, axes);
  if (count_of(in) == 0 && y.count() > 0)
    return fail_call(call, "PW1203", "an empty image cannot be resized");
  return over_planes<T>(x, y, count_of(in), count_of(out), [&](std::int64_t, const T* from, T* to) {
    SampledRows<T> rows(samples[2], in, linear);
    rows.begin(from);
    std::vector<T> far(static_cast<std::size_t>(out[2]));
    const auto sampled = [&](std::int64_t plane, const AxisSample& r, T* row) {
      const T* const near = rows.at(plane, r.first);
      if (!linear || r.first == r.second)
        std::copy_n(near, out[2], row);
      else
        blend(near, rows.at(plane, r.second), r.share, out[2], row);
    };
    for (const AxisSample& z : samples[0])
      for (const AxisSample& r : samples[1]) {
        sampled(z.first, r, to);
        if (linear && z.first != z.second) {
          sampled(z.second, r, far.data());
          blend(to, far.data(), z.share, out[2], to);
        }
        to += out[2];
      }
  });
}
Status upsample_nearest(Call& call) {
  return in_compute_type(call,
                         [&](auto type) { return run_upsample<decltype(type)>(call, false); });
}
Status upsample_linear(Call& call) {
  return call.operand_dtype(0) == DType::f64 ? run_upsample<double>(call, true)
                                             : run_upsample<float>(call, true);
}

constexpr KernelEntry kWindows[] = {{Primitive::max_pool, max_pool},
                                    {Primitive::max_unpool, max_unpool},
                                    {Primitive::avg_pool, avg_pool},
                                    {Primitive::avg_unpool, avg_unpool},
                                    {Primitive::adaptive_avg_pool, adaptive_avg_pool},
                                    {Primitive::adaptive_avg_unpool, adaptive_avg_unpool},
                                    {Primitive::upsample_nearest, upsample_nearest},
                                    {Primitive::upsample_linear, upsample_linear}};

}  // namespace

KernelTable windows() { return kWindows; }

}  // namespace pw::eager
