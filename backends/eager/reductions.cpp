#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "backends/eager/kernels.hpp"
#include "graph/ops/scalar_functions.hpp"

namespace pw::eager {
namespace {

/// Reduces a row. The order depends only on the width, never on the row's place: columns are
/// assigned to lanes in turn, then lanes are combined pairwise, the farthest first.
template <class T, class F>
T reduced(const T* row, std::int64_t width, T start) {
  constexpr std::int64_t kLanes = 16;
  T lanes[kLanes];
  std::fill(lanes, lanes + kLanes, start);
  const std::int64_t whole = width / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = F::of(lanes[lane], row[i + lane]);
  for (std::int64_t i = whole; i < width; ++i) lanes[i - whole] = F::of(lanes[i - whole], row[i]);
  for (std::int64_t far = kLanes / 2; far > 0; far /= 2)
    for (std::int64_t lane = 0; lane < far; ++lane)
      lanes[lane] = F::of(lanes[lane], lanes[lane + far]);
  return lanes[0];
}

struct Sum {
  template <class T>
  static T of(const T* row, std::int64_t width) {
    return reduced<T, scalar::add>(row, width, T(0));
  }
};
struct Mean {
  template <class T>
  static T of(const T* row, std::int64_t width) {
    if (width == 0) return std::numeric_limits<T>::quiet_NaN();
    return scalar::div::of<T>(Sum::of(row, width), static_cast<T>(width));
  }
};
/// A NaN anywhere makes the result NaN; an empty row gives the smallest number.
struct Amax {
  template <class T>
  static T of(const T* row, std::int64_t width) {
    using Limits = std::numeric_limits<T>;
    return reduced<T, scalar::maximum>(
        row, width, Limits::has_infinity ? -Limits::infinity() : Limits::lowest());
  }
};
struct Amin {
  template <class T>
  static T of(const T* row, std::int64_t width) {
    using Limits = std::numeric_limits<T>;
    return reduced<T, scalar::minimum>(row, width,
                                       Limits::has_infinity ? Limits::infinity() : Limits::max());
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
  const bool in_place = x.dtype == kStoredAs<T> && step == 1;
  std::vector<T> row(in_place ? 0 : static_cast<std::size_t>(width)), values;
  for_each_run(x.extents, strides, std::int64_t{1} << 60, [&](const Run& run) {
    values.resize(static_cast<std::size_t>(run.length));
    for (std::int64_t i = 0; i < run.length; ++i) {
      const std::byte* source = x.at(run.offsets[0] + i * run.steps[0]);
      if (!in_place) load_run(x.dtype, source, step, width, row.data());
      const T* begin = in_place ? reinterpret_cast<const T*>(source) : row.data();
      values[static_cast<std::size_t>(i)] = F::template of<T>(begin, width);
    }
    store_run(y.dtype, y.at(run.offsets[1]), run.steps[1], run.length, values.data());
  });
  return {};
}

template <class F>
Status reduction(Call& call) {
  const DType dtype = call.operand_dtype(0);
  if (!is_float(dtype)) return over_axis<std::int64_t, F>(call);
  return dtype == DType::f64 ? over_axis<double, F>(call) : over_axis<float, F>(call);
}

/// Returns true if an element is one of the k that are kept: fewer than k are larger, or equal and
/// before it. NaN is larger than any number.
template <class T>
bool is_kept(const T* row, std::int64_t width, std::int64_t at, std::int64_t k) {
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < width && before < k; ++i) {
    const bool larger = row[i] > row[at] || (row[i] != row[i] && row[at] == row[at]);
    const bool smaller = row[at] > row[i] || (row[at] != row[at] && row[i] == row[i]);
    before += larger || (!smaller && i < at) ? 1 : 0;
  }
  return before < k;
}

template <class T>
Status topk_rows(Call& call) {
  const Array x = contiguous(call.operand(0));
  Array& y = call.result();
  const std::int64_t width = x.extents.back(), k = call.integer("k", 0);
  std::vector<T> row(static_cast<std::size_t>(width)), shares(row.size());
  for (std::int64_t at = 0; at < x.count(); at += width) {
    load_run(x.dtype, x.at(at), 1, width, row.data());
    T total = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      shares[i] = is_kept(row.data(), width, static_cast<std::int64_t>(i), k) ? T(1) : T(0);
      if (shares[i] != 0) total += row[i];
    }
    for (std::size_t i = 0; i < row.size(); ++i)
      if (shares[i] != 0) shares[i] = row[i] / total;
    store_run(y.dtype, y.at(at), 1, width, shares.data());
  }
  return {};
}

Status keep_topk(Call& call) {
  if (!is_float(call.operand_dtype(0)))
    return fail_call(call, "PW1203", "the operand must be floating");
  return call.operand_dtype(0) == DType::f64 ? topk_rows<double>(call) : topk_rows<float>(call);
}

constexpr KernelEntry kReductions[] = {{Primitive::sum, reduction<Sum>},
                                       {Primitive::mean, reduction<Mean>},
                                       {Primitive::amax, reduction<Amax>},
                                       {Primitive::amin, reduction<Amin>},
                                       {Primitive::keep_topk, keep_topk}};

}  // namespace

KernelTable reductions() { return kReductions; }

}  // namespace pw::eager
