// The order of additions depends on the width only: chunks of 8 columns go round a power of two of
// lanes, each lane adds in ascending order, then lanes are added pairwise, the farthest first.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "backends/interpreter/kernels.hpp"
#include "graph/ops/scalar_functions.hpp"

namespace pw {
namespace {

std::int64_t lane_count(std::int64_t width) {
  std::int64_t lanes = 1;
  while (lanes < 256 && lanes * 8 < width) lanes *= 2;
  return lanes;
}

template <class T, class F>
T reduce(const T* x, std::int64_t width, T start, F combine) {
  T lanes[256];
  const std::int64_t count = lane_count(width);
  std::fill(lanes, lanes + count, start);
  for (std::int64_t i = 0; i < width; ++i) {
    T& lane = lanes[i / 8 % count];
    lane = combine(lane, x[i]);
  }
  for (std::int64_t offset = count / 2; offset > 0; offset /= 2) {
    for (std::int64_t i = 0; i < offset; ++i) lanes[i] = combine(lanes[i], lanes[i + offset]);
  }
  return lanes[0];
}

template <class T>
T lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::lowest();
}
template <class T>
T highest() {
  return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::max();
}

struct Sum {
  template <class T>
  static T of(const T* x, std::int64_t n) {
    return reduce(x, n, T(0), [](T a, T b) { return scalar::add::of(a, b); });
  }
};
struct Mean {
  template <class T>
  static T of(const T* x, std::int64_t n) {
    return n == 0 ? std::numeric_limits<T>::quiet_NaN()
                  : static_cast<T>(Sum::of(x, n) / static_cast<T>(n));
  }
};
/// A NaN anywhere makes the result NaN.
struct Amax {
  template <class T>
  static T of(const T* x, std::int64_t n) {
    return reduce(x, n, lowest<T>(), [](T a, T b) { return a != a || a > b ? a : b; });
  }
};
struct Amin {
  template <class T>
  static T of(const T* x, std::int64_t n) {
    return reduce(x, n, highest<T>(), [](T a, T b) { return a != a || a < b ? a : b; });
  }
};

template <class T, class F>
Status over_axis(Call& call) {
  Array x = call.operand(0);
  Array& y = call.result();
  const std::size_t axis = call.axis("dim", -1, x.rank());
  const std::int64_t width = call.covered(0, axis), step = x.strides[axis];
  x.extents.erase(x.extents.begin() + static_cast<std::ptrdiff_t>(axis));
  x.strides.erase(x.strides.begin() + static_cast<std::ptrdiff_t>(axis));
  const Extents strides[] = {x.strides, row_major(x.extents)};
  std::vector<T> row(static_cast<std::size_t>(width));
  for_each_run(x.extents, strides, std::int64_t{1} << 60, [&](const Run& run) {
    for (std::int64_t i = 0; i < run.length; ++i) {
      load_run(x.dtype, x.at(run.offsets[0] + i * run.steps[0]), step, width, row.data());
      T value = F::template of<T>(row.data(), width);
      store_declared(call.result_dtype(), y, run.offsets[1] + i * run.steps[1], 1, 1, &value);
    }
  });
  return {};
}

template <class Real, class F>
Status reduction(Call& call) {
  const DType dtype = call.operand_dtype(0);
  if (!is_float(dtype)) return over_axis<std::int64_t, F>(call);
  return dtype == DType::f64 ? over_axis<double, F>(call) : over_axis<Real, F>(call);
}

/// Keeps the largest elements: NaN before any number, equal elements by index. The kept ones are
/// added in their original order.
template <class Real>
void keep_largest(std::vector<Real>& row, std::int64_t k) {
  std::vector<std::size_t> order(row.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    if (std::isnan(row[i]) || std::isnan(row[j])) return std::isnan(row[i]) && !std::isnan(row[j]);
    return row[i] > row[j];
  });
  const auto last = static_cast<std::size_t>(std::max<std::int64_t>(k, 0));
  for (std::size_t i = last; i < order.size(); ++i) row[order[i]] = 0;
  order.resize(std::min(last, order.size()));
  std::sort(order.begin(), order.end());
  Real total = 0;
  for (std::size_t i : order) total += row[i];
  for (std::size_t i : order) row[i] /= total;
}

template <class T>
Status topk_rows(Call& call) {
  const Array x = contiguous(call.operand(0));
  Array& y = call.result();
  const std::int64_t width = x.extents.back();
  std::vector<T> row(static_cast<std::size_t>(width));
  for (std::int64_t at = 0; at < x.count(); at += width) {
    load_run(x.dtype, x.at(at), 1, width, row.data());
    keep_largest(row, call.integer("k", 0));
    store_declared(call.result_dtype(), y, at, 1, width, row.data());
  }
  return {};
}

template <class Real>
Status keep_topk(Call& call) {
  if (!is_float(call.operand_dtype(0)))
    return fail_call(call, "PW1203", "the operand must be floating");
  return call.operand_dtype(0) == DType::f64 ? topk_rows<double>(call) : topk_rows<Real>(call);
}

template <class Real>
constexpr KernelEntry kReductions[] = {{Primitive::sum, reduction<Real, Sum>},
                                       {Primitive::mean, reduction<Real, Mean>},
                                       {Primitive::amax, reduction<Real, Amax>},
                                       {Primitive::amin, reduction<Real, Amin>},
                                       {Primitive::keep_topk, keep_topk<Real>}};

}  // namespace

template <class Real>
KernelTable interpreter_reductions() {
  return kReductions<Real>;
}
template KernelTable interpreter_reductions<float>();
template KernelTable interpreter_reductions<double>();

}  // namespace pw
