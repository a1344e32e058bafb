#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>

#include "backends/interpreter/kernels.hpp"
#include "graph/ops/scalar_functions.hpp"

namespace pw {
namespace {

/// Calls visit(lane, place in x, place in a result of x's extents) for each lane along the axis.
template <class Visit>
void each_lane(const Array& x, std::size_t axis, const Visit& visit) {
  Extents extents = x.extents, steps = x.strides, whole = row_major(x.extents);
  for (Extents* list : {&extents, &steps, &whole})
    list->erase(list->begin() + static_cast<std::ptrdiff_t>(axis));
  const Extents strides[] = {steps, whole};
  std::int64_t lane = 0;
  for_each_run(extents, strides, std::int64_t{1} << 60, [&](const Run& run) {
    for (std::int64_t i = 0; i < run.length; ++i)
      visit(lane++, run.offsets[0] + i * run.steps[0], run.offsets[1] + i * run.steps[1]);
  });
}

template <class T>
std::vector<T> lane_of(const Array& x, std::int64_t at, std::int64_t step, std::int64_t width) {
  std::vector<T> out(static_cast<std::size_t>(width));
  load_run(x.dtype, x.at(at), step, width, out.data());
  return out;
}

template <class T, class F>
Status running(Call& call) {
  const Array& x = call.operand(0);
  Array& y = call.result();
  const std::size_t axis = call.axis("dim", -1, x.rank());
  each_lane(x, axis, [&](std::int64_t, std::int64_t from, std::int64_t to) {
    std::vector<T> row = lane_of<T>(x, from, x.strides[axis], x.extents[axis]);
    std::partial_sum(row.begin(), row.end(), row.begin(), [](T a, T b) { return F::of(a, b); });
    store_declared(call.result_dtype(), y, to, y.strides[axis], x.extents[axis], row.data());
  });
  return {};
}

/// Scans an axis. In single precision f32 sums accumulate in f64.
template <class Real, class F>
Status scan(Call& call) {
  const DType dtype = call.operand_dtype(0);
  if (!is_float(dtype)) return running<std::int64_t, F>(call);
  if (dtype == DType::f64 || dtype == DType::f32) return running<double, F>(call);
  return running<Real, F>(call);
}

/// Returns true if a precedes b in ascending order, with NaN after all numbers.
template <class T>
bool smaller(T a, T b) {
  return a < b || (a == a && b != b);
}

template <class T>
Status sort_as(Call& call, bool descending) {
  const Array& x = call.operand(0);
  Array &values = call.result(0), &indices = call.result(1);
  const std::size_t axis = call.axis("dim", -1, x.rank());
  const std::int64_t kept = values.extents[axis];
  if (kept > x.extents[axis])
    return fail_call(call, "PW1203", "more elements are requested than the axis has");
  each_lane(x, axis, [&](std::int64_t lane, std::int64_t from, std::int64_t) {
    const std::vector<T> row = lane_of<T>(x, from, x.strides[axis], x.extents[axis]);
    std::vector<std::int64_t> order(row.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
      const T a = row[static_cast<std::size_t>(i)], b = row[static_cast<std::size_t>(j)];
      return descending ? smaller(b, a) : smaller(a, b);
    });
    std::vector<T> ordered;
    for (std::int64_t i : order) ordered.push_back(row[static_cast<std::size_t>(i)]);
    const std::int64_t step = values.strides[axis], to = lane / step * step * kept + lane % step;
    store_declared(call.result_dtype(0), values, to, step, kept, ordered.data());
    store_declared(DType::i64, indices, to, step, kept, order.data());
  });
  return {};
}

template <class Real>
Status in_order(Call& call, bool descending) {
  const DType dtype = call.operand_dtype(0);
  if (!is_float(dtype)) return sort_as<std::int64_t>(call, descending);
  return dtype == DType::f64 ? sort_as<double>(call, descending) : sort_as<Real>(call, descending);
}
template <class Real>
Status sort(Call& call) {
  return in_order<Real>(call, call.integer("descending", 0) != 0);
}
template <class Real>
Status topk(Call& call) {
  return in_order<Real>(call, call.integer("largest", 1) != 0);
}

template <class T, class F>
Status each_reduced(Call& call, const F& reduce) {
  const Array& x = call.operand(0);
  Array& y = call.result();
  const std::size_t axis = call.axis("dim", -1, x.rank());
  const std::int64_t width = call.covered(0, axis);
  each_lane(x, axis, [&](std::int64_t lane, std::int64_t from, std::int64_t) {
    auto value = reduce(lane_of<T>(x, from, x.strides[axis], width));
    store_declared(call.result_dtype(), y, lane, 1, 1, &value);
  });
  return {};
}

template <class T>
Status prod_as(Call& call) {
  return each_reduced<T>(call, [](const std::vector<T>& row) {
    return std::accumulate(row.begin(), row.end(), T(1),
                           [](T a, T b) { return scalar::mul::of(a, b); });
  });
}

template <class Real>
Status prod(Call& call) {
  const DType dtype = call.operand_dtype(0);
  if (!is_float(dtype)) return prod_as<std::int64_t>(call);
  return dtype == DType::f64 ? prod_as<double>(call) : prod_as<Real>(call);
}

/// Backwards, so that the first of equals stays; a NaN is kept as if it were the largest and the
/// smallest.
template <class T, bool largest>
Status arg_extreme_as(Call& call) {
  return each_reduced<T>(call, [](const std::vector<T>& row) {
    std::size_t best = row.size() - 1;
    for (std::size_t i = row.size(); i-- > 0;) {
      const T a = row[i], b = row[best];
      if (a != a || (b == b && (largest ? a >= b : a <= b))) best = i;
    }
    return static_cast<std::int64_t>(best);
  });
}

template <class Real, bool largest>
Status arg_extreme(Call& call) {
  const Array& x = call.operand(0);
  const DType dtype = call.operand_dtype(0);
  if (call.covered(0, call.axis("dim", -1, x.rank())) == 0)
    return fail_call(call, "PW1203", "an empty axis has no largest or smallest element");
  if (!is_float(dtype)) return arg_extreme_as<std::int64_t, largest>(call);
  return dtype == DType::f64 ? arg_extreme_as<double, largest>(call)
                             : arg_extreme_as<Real, largest>(call);
}

template <class Real>
constexpr KernelEntry kScan[] = {{Primitive::cumsum, scan<Real, scalar::add>},
                                 {Primitive::cumprod, scan<Real, scalar::mul>},
                                 {Primitive::sort, sort<Real>},
                                 {Primitive::topk, topk<Real>},
                                 {Primitive::argmax, arg_extreme<Real, true>},
                                 {Primitive::argmin, arg_extreme<Real, false>},
                                 {Primitive::prod, prod<Real>}};

}  // namespace

template <class Real>
KernelTable interpreter_scan() {
  return kScan<Real>;
}
template KernelTable interpreter_scan<float>();
template KernelTable interpreter_scan<double>();

}  // namespace pw
