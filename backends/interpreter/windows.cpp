#include "backends/windows.hpp"

#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "backends/interpreter/kernels.hpp"

namespace pw {
namespace {

std::int64_t product_of(const Axes& axes) { return axes[0] * axes[1] * axes[2]; }
/// Returns the coordinates of element i of these extents.
Axes place_of(const Axes& extents, std::int64_t i) {
  return {i / extents[2] / extents[1], i / extents[2] % extents[1], i % extents[2]};
}
std::int64_t element_of(const Axes& extents, const Axes& at) {
  return (at[0] * extents[1] + at[1]) * extents[2] + at[2];
}
bool is_inside(const Axes& extents, const Axes& at) {
  for (std::size_t i = 0; i < 3; ++i)
    if (at[i] < 0 || at[i] >= extents[i]) return false;
  return true;
}

/// Stores of(first element of the plane, place) in each element of the result.
template <class T, class Of>
Status by_place(Call& call, const Axes& in, const Axes& out, const Of& of) {
  Array& y = call.results[0];
  const std::int64_t size = product_of(out);
  for (std::int64_t i = 0; i < y.count(); ++i) {
    T value = of(i / size * product_of(in), i % size);
    store_declared(call.result_dtype(), y, i, 1, 1, &value);
  }
  return {};
}

template <class T>
Status pool_largest(Call& call) {
  Array &y = call.result(0), &index = call.result(1);
  const Window w = window_of(call, call.dims("kernel"), call.operand(0).extents, y.extents);
  if (y.count() > 0 && w.has_padding_alone())
    return fail_call(call, "PW1203", "a window contains only padding");
  const std::vector<T> x = elements_of<T>(call.operand(0));
  auto* at = reinterpret_cast<std::int64_t*>(index.data);
  return by_place<T>(call, w.in, w.out, [&](std::int64_t plane, std::int64_t place) {
    const Axes to = place_of(w.out, place);
    const T* const elements = x.data() + plane;
    std::int64_t best = -1;
    for (std::int64_t k = 0; k < w.kernel_count(); ++k) {
      const Axes tap = place_of(w.kernel, k);
      const Axes from = {w.source(0, to[0], tap[0]), w.source(1, to[1], tap[1]),
                         w.source(2, to[2], tap[2])};
      if (!is_inside(w.in, from)) continue;
      const T value = elements[element_of(w.in, from)];
      if (best < 0 || value > elements[best] || value != value) best = element_of(w.in, from);
    }
    *at++ = best;
    return elements[best];
  });
}

template <class Real>
Status max_pool(Call& call) {
  const DType dtype = call.operand_dtype(0);
  if (!is_float(dtype)) return pool_largest<std::int64_t>(call);
  return pool_largest<Real>(call);
}

template <class Real>
Status max_unpool(Call& call) {
  Array& x = call.result();
  const std::size_t axes = call.dims("size").size();
  const std::int64_t in = product_of(last_axes(call.operand(0).extents, axes)),
                     out = product_of(last_axes(x.extents, axes));
  const std::vector<Real> y = elements_of<Real>(call.operand(0));
  const std::vector<std::int64_t> index = elements_of<std::int64_t>(call.operand(1));
  std::vector<Real> sums(static_cast<std::size_t>(x.count()), Real(0));
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (index[i] < 0 || index[i] >= out)
      return fail_call(call, "PW1204",
                       fmt::format("index {} is outside {} elements", index[i], out));
    sums[static_cast<std::size_t>(static_cast<std::int64_t>(i) / in * out + index[i])] += y[i];
  }
  store_declared(call.result_dtype(), x, 0, 1, x.count(), sums.data());
  return {};
}

/// Calls visit(element) for the window at a place; returns the divisor of its sum.
template <class Visit>
std::int64_t over_window(const Means& m, std::int64_t place, const Visit& visit) {
  const Axes at = place_of(m.out, place);
  const auto stretch = [&](std::size_t i) { return m.axes[i][static_cast<std::size_t>(at[i])]; };
  const Stretch z = stretch(0), y = stretch(1), x = stretch(2);
  for (std::int64_t i = z.begin; i < z.end; ++i)
    for (std::int64_t j = y.begin; j < y.end; ++j)
      for (std::int64_t k = x.begin; k < x.end; ++k) visit(element_of(m.in, {i, j, k}));
  return m.divisor != 0 ? m.divisor : z.count * y.count * x.count;
}

template <class Real>
Status take_means(Call& call, const Means& m) {
  const std::vector<Real> x = elements_of<Real>(call.operand(0));
  return by_place<Real>(call, m.in, m.out, [&](std::int64_t plane, std::int64_t place) {
    Real sum = 0;
    bool any = false;
    const std::int64_t divisor = over_window(m, place, [&](std::int64_t at) {
      sum += x[static_cast<std::size_t>(plane + at)];
      any = true;
    });
    return any ? sum / static_cast<Real>(divisor) : Real(0);
  });
}

template <class Real>
Status give_means(Call& call, const Means& m) {
  const std::vector<Real> y = elements_of<Real>(call.operand(0));
  Array& x = call.results[0];
  const std::int64_t in = product_of(m.in), out = product_of(m.out);
  std::vector<Real> sums(static_cast<std::size_t>(x.count()), Real(0));
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t divisor = over_window(m, at % out, [](std::int64_t) {});
    over_window(m, at % out, [&](std::int64_t element) {
      sums[static_cast<std::size_t>(at / out * in + element)] += y[i] / static_cast<Real>(divisor);
    });
  }
  store_declared(call.result_dtype(), x, 0, 1, x.count(), sums.data());
  return {};
}

template <class Real>
Status avg_pool(Call& call) {
  return take_means<Real>(call, means_of(call, call.operand(0).extents, call.result().extents));
}
template <class Real>
Status avg_unpool(Call& call) {
  return give_means<Real>(call, means_of(call, call.result().extents, call.operand(0).extents));
}
template <class Real>
Status adaptive_avg_pool(Call& call) {
  return take_means<Real>(call, adaptive_means_of(call.dims("size").size(), call.operand(0).extents,
                                                  call.result().extents));
}
template <class Real>
Status adaptive_avg_unpool(Call& call) {
  return give_means<Real>(call, adaptive_means_of(call.dims("size").size(), call.result().extents,
                                                  call.operand(0).extents));
}

template <class T>
Status sample(Call& call, bool linear) {
  const Array& x = call.operand(0);
  Array& y = call.result();
  const std::size_t axes = sampled_axes(call);
  const Axes in = last_axes(x.extents, axes), out = last_axes(y.extents, axes);
  if (product_of(in) == 0 && y.count() > 0)
    return fail_call(call, "PW1203", "an empty image cannot be resized");
  const auto samples =
      samples_of(call, x.extents, y.extents, linear, call.operand_dtype(0) == DType::f64);
  const std::vector<T> values = elements_of<T>(x);
  return by_place<T>(call, in, out, [&](std::int64_t plane, std::int64_t place) {
    const Axes to = place_of(out, place);
    T sum = 0;
    for (unsigned corner = 0; corner < 8; ++corner) {
      Axes at{};
      double share = 1;
      bool counts = true;  // even with a weight of 0, because 0 times NaN is NaN
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const AxisSample& s = samples[axis][static_cast<std::size_t>(to[axis])];
        const bool second = (corner >> axis & 1) != 0;
        at[axis] = second ? s.second : s.first;
        const bool alone = !linear || s.first == s.second;
        share *= alone ? 1 : second ? s.share : 1 - s.share;
        counts = counts && !(second && alone);
      }
      if (counts)
        sum += static_cast<T>(share) * values[static_cast<std::size_t>(plane + element_of(in, at))];
    }
    return sum;
  });
}
template <class Real>
Status upsample_nearest(Call& call) {
  return is_float(call.operand_dtype(0)) ? sample<Real>(call, false)
                                         : sample<std::int64_t>(call, false);
}
template <class Real>
Status upsample_linear(Call& call) {
  return sample<Real>(call, true);
}

template <class Real>
constexpr KernelEntry kWindows[] = {{Primitive::max_pool, max_pool<Real>},
                                    {Primitive::max_unpool, max_unpool<Real>},
                                    {Primitive::avg_pool, avg_pool<Real>},
                                    {Primitive::avg_unpool, avg_unpool<Real>},
                                    {Primitive::adaptive_avg_pool, adaptive_avg_pool<Real>},
                                    {Primitive::adaptive_avg_unpool, adaptive_avg_unpool<Real>},
                                    {Primitive::upsample_nearest, upsample_nearest<Real>},
                                    {Primitive::upsample_linear, upsample_linear<Real>}};

}  // namespace

template <class Real>
KernelTable interpreter_windows() {
  return kWindows<Real>;
}
template KernelTable interpreter_windows<float>();
template KernelTable interpreter_windows<double>();

}  // namespace pw
