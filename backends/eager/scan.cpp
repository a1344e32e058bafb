// Converts each lane along an axis to the compute type and scans it from the start.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/eager/kernels.hpp"
#include "graph/ops/scalar_functions.hpp"
#include "tensor/parallel.hpp"

namespace pw::eager {
namespace {

/// The lanes of a row-major array along one axis.
struct Lanes {
  std::int64_t count = 0, width = 0, step = 1;
  [[nodiscard]] std::int64_t begin(std::int64_t lane) const {
    return lane / step * step * width + lane % step;
  }
};

Lanes lanes_of(const Array& x, std::size_t axis) {
  Lanes out;
  out.width = x.extents[axis];
  for (std::size_t i = axis + 1; i < x.extents.size(); ++i) out.step *= x.extents[i];
  out.count = out.step;
  for (std::size_t i = 0; i < axis; ++i) out.count *= x.extents[i];
  return out;
}

/// Calls work(first lane, last lane), on several threads if that pays off.
void over_lanes(const Lanes& lanes, const std::function<void(std::int64_t, std::int64_t)>& work) {
  constexpr std::int64_t kWorthAThread = 1 << 15;
  parallel_for(lanes.count, 1 + kWorthAThread / (lanes.width + 1), work);
}

/// Scans neighbouring lanes together, some elements of each at a time.
template <class T, class F>
Status running(Call& call) {
  constexpr std::int64_t kMost = 256;
  const Array x = contiguous(call.operand(0));
  Array& y = call.result();
  const Lanes lanes = lanes_of(x, call.axis("dim", -1, x.rank()));
  if (lanes.width == 0) return {};
  over_lanes(lanes, [&](std::int64_t begin, std::int64_t end) {
    T sums[kMost], row[kMost];
    for (std::int64_t lane = begin; lane < end;) {
      const std::int64_t at = lanes.begin(lane);
      const std::int64_t count = std::min({kMost, lanes.step - lane % lanes.step, end - lane});
      if (lanes.step == 1) {
        for (std::int64_t first = 0; first < lanes.width; first += kMost) {
          const std::int64_t length = std::min(kMost, lanes.width - first);
          load_run(x.dtype, x.at(at + first), 1, length, row);
          T sum = first != 0 ? F::of(sums[0], row[0]) : row[0];
          row[0] = sum;
          for (std::int64_t i = 1; i < length; ++i) row[i] = sum = F::of(sum, row[i]);
          sums[0] = sum;
          store_run(y.dtype, y.at(at + first), 1, length, row);
        }
      } else {
        load_run(x.dtype, x.at(at), 1, count, sums);
        store_run(y.dtype, y.at(at), 1, count, sums);
        for (std::int64_t i = 1; i < lanes.width; ++i) {
          load_run(x.dtype, x.at(at + i * lanes.step), 1, count, row);
          for (std::int64_t k = 0; k < count; ++k) sums[k] = F::of(sums[k], row[k]);
          store_run(y.dtype, y.at(at + i * lanes.step), 1, count, sums);
        }
      }
      lane += count;
    }
  });
  return {};
}

/// f32 sums accumulate in f64, as in PyTorch.
template <class F>
Status scan(Call& call) {
  const DType dtype = call.operand_dtype(0);
  if (!is_float(dtype)) return running<std::int64_t, F>(call);
  const bool wide = dtype == DType::f64 || dtype == DType::f32;
  return wide ? running<double, F>(call) : running<float, F>(call);
}

template <class T>
struct Placed {
  T key;
  std::int64_t at;
};

/// Orders NaN after any number.
template <class T>
bool larger(T a, T b) {
  return a > b || (a != a && b == b);
}

/// Sorts the first `keep` elements to their final places.
template <class T>
void sort_row(std::vector<Placed<T>>& row, std::size_t keep, bool descending) {
  const auto before = [descending](const Placed<T>& a, const Placed<T>& b) {
    if (larger(a.key, b.key)) return descending;
    if (larger(b.key, a.key)) return !descending;
    return a.at < b.at;
  };
  if (keep == row.size())
    std::sort(row.begin(), row.end(), before);
  else
    std::partial_sort(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(keep), row.end(),
                      before);
}

/// Sorts as many elements as the results hold.
template <class T>
Status sorted(Call& call, bool descending) {
  const Array x = contiguous(call.operand(0));
  Array &values = call.result(0), &indices = call.result(1);
  const std::size_t axis = call.axis("dim", -1, x.rank());
  const Lanes lanes = lanes_of(x, axis), kept = lanes_of(values, axis);
  if (kept.width > lanes.width)
    return fail_call(call, "PW1203", "more elements are requested than the axis has");
  over_lanes(lanes, [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> keys(static_cast<std::size_t>(lanes.width));
    std::vector<std::int64_t> places(static_cast<std::size_t>(kept.width));
    std::vector<Placed<T>> row(keys.size());
    for (std::int64_t lane = begin; lane < end; ++lane) {
      load_run(x.dtype, x.at(lanes.begin(lane)), lanes.step, lanes.width, keys.data());
      for (std::size_t i = 0; i < row.size(); ++i) row[i] = {keys[i], static_cast<std::int64_t>(i)};
      sort_row(row, places.size(), descending);
      for (std::size_t i = 0; i < places.size(); ++i) {
        keys[i] = row[i].key;
        places[i] = row[i].at;
      }
      const std::int64_t at = kept.begin(lane);
      store_run(values.dtype, values.at(at), kept.step, kept.width, keys.data());
      store_run(indices.dtype, indices.at(at), kept.step, kept.width, places.data());
    }
  });
  return {};
}

/// Calls R::of(row) for each lane with its valid elements. Of strided lanes it reads several
/// neighbours at a time, which share cache lines.
template <class T, class R>
Status reduced_lanes(Call& call) {
  constexpr std::int64_t kMost = 16;
  const Array x = contiguous(call.operand(0));
  Array& y = call.result();
  const std::size_t axis = call.axis("dim", -1, x.rank());
  const Lanes lanes = lanes_of(x, axis);
  const std::int64_t width = call.covered(0, axis);
  over_lanes(lanes, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::vector<T>> rows(static_cast<std::size_t>(std::min(kMost, lanes.step)),
                                     std::vector<T>(static_cast<std::size_t>(width)));
    T neighbours[kMost];
    for (std::int64_t lane = begin; lane < end;) {
      const std::int64_t count = std::min({kMost, lanes.step - lane % lanes.step, end - lane});
      if (count == 1) {
        load_run(x.dtype, x.at(lanes.begin(lane)), lanes.step, width, rows[0].data());
      } else {
        for (std::int64_t i = 0; i < width; ++i) {
          load_run(x.dtype, x.at(lanes.begin(lane) + i * lanes.step), 1, count, neighbours);
          for (std::int64_t k = 0; k < count; ++k)
            rows[static_cast<std::size_t>(k)][static_cast<std::size_t>(i)] = neighbours[k];
        }
      }
      for (std::int64_t k = 0; k < count; ++k, ++lane) {
        const auto value = R::of(rows[static_cast<std::size_t>(k)]);
        store_run(y.dtype, y.at(lane), 1, 1, &value);
      }
    }
  });
  return {};
}

/// Multiplies columns in turn in several lanes, then the lanes, so that vectors hold them.
template <class T>
T multiplied(const Array& x, std::int64_t begin, std::int64_t width) {
  constexpr std::int64_t kLanes = 16, kMost = 1024;
  T lanes[kLanes], loaded[kMost];
  std::fill(lanes, lanes + kLanes, T(1));
  for (std::int64_t first = 0; first < width; first += kMost) {
    const std::int64_t count = std::min(kMost, width - first), whole = count / kLanes * kLanes;
    const std::byte* const at = x.at(begin + first);
    if (x.dtype != kStoredAs<T>) load_run(x.dtype, at, 1, count, loaded);
    const T* const row = x.dtype == kStoredAs<T> ? reinterpret_cast<const T*>(at) : loaded;
    for (std::int64_t i = 0; i < whole; i += kLanes)
      for (std::int64_t lane = 0; lane < kLanes; ++lane)
        lanes[lane] = scalar::mul::of(lanes[lane], row[i + lane]);
    for (std::int64_t i = whole; i < count; ++i)
      lanes[i - whole] = scalar::mul::of(lanes[i - whole], row[i]);
  }
  for (std::int64_t far = kLanes / 2; far > 0; far /= 2)
    for (std::int64_t lane = 0; lane < far; ++lane)
      lanes[lane] = scalar::mul::of(lanes[lane], lanes[lane + far]);
  return lanes[0];
}

template <class T>
void multiply_along(const Array& x, const Array& y, const Lanes& lanes, std::int64_t width) {
  over_lanes(lanes, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t lane = begin; lane < end; ++lane) {
      const T product = multiplied<T>(x, lanes.begin(lane), width);
      store_run(y.dtype, y.at(lane), 1, 1, &product);
    }
  });
}

/// Multiplies the elements of neighbouring lanes one after another, so that vectors hold
/// neighbours.
template <class T>
void multiply_across(const Array& x, const Array& y, const Lanes& lanes, std::int64_t width) {
  constexpr std::int64_t kMost = 2048;  // the products stay in the nearest cache
  over_lanes(lanes, [&](std::int64_t begin, std::int64_t end) {
    T products[kMost], loaded[kMost];
    for (std::int64_t lane = begin; lane < end;) {
      const std::int64_t count = std::min({kMost, lanes.step - lane % lanes.step, end - lane});
      std::fill(products, products + count, T(1));
      for (std::int64_t i = 0; i < width; ++i) {
        const std::byte* const at = x.at(lanes.begin(lane) + i * lanes.step);
        if (x.dtype != kStoredAs<T>) load_run(x.dtype, at, 1, count, loaded);
        const T* const row = x.dtype == kStoredAs<T> ? reinterpret_cast<const T*>(at) : loaded;
        for (std::int64_t k = 0; k < count; ++k) products[k] = scalar::mul::of(products[k], row[k]);
      }
      store_run(y.dtype, y.at(lane), 1, count, products);
      lane += count;
    }
  });
}

template <bool largest>
struct ArgExtreme {
  template <class T>
  static std::int64_t of(const std::vector<T>& row) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < row.size() && row[best] == row[best]; ++i)
      if ((largest ? row[i] > row[best] : row[i] < row[best]) || row[i] != row[i]) best = i;
    return static_cast<std::int64_t>(best);
  }
};

template <class R>
Status reduction_of(Call& call) {
  const DType dtype = call.operand_dtype(0);
  if (!is_float(dtype)) return reduced_lanes<std::int64_t, R>(call);
  return dtype == DType::f64 ? reduced_lanes<double, R>(call) : reduced_lanes<float, R>(call);
}

Status prod(Call& call) {
  const Array x = contiguous(call.operand(0));
  const std::size_t axis = call.axis("dim", -1, x.rank());
  const Lanes lanes = lanes_of(x, axis);
  const std::int64_t width = call.covered(0, axis);
  const auto multiply = [&](auto one) {
    using T = decltype(one);
    if (lanes.step == 1)
      multiply_along<T>(x, call.result(), lanes, width);
    else
      multiply_across<T>(x, call.result(), lanes, width);
    return Status();
  };
  if (!is_float(call.operand_dtype(0))) return multiply(std::int64_t{1});
  return call.operand_dtype(0) == DType::f64 ? multiply(1.0) : multiply(1.0f);
}

template <bool largest>
Status arg_extreme(Call& call) {
  const std::size_t axis = call.axis("dim", -1, call.operand(0).rank());
  if (call.covered(0, axis) == 0)
    return fail_call(call, "PW1203", "an empty axis has no largest or smallest element");
  return reduction_of<ArgExtreme<largest>>(call);
}

Status in_order(Call& call, bool descending) {
  const DType dtype = call.operand_dtype(0);
  if (!is_float(dtype)) return sorted<std::int64_t>(call, descending);
  return dtype == DType::f64 ? sorted<double>(call, descending) : sorted<float>(call, descending);
}
Status sort(Call& call) { return in_order(call, call.integer("descending", 0) != 0); }
Status topk(Call& call) { return in_order(call, call.integer("largest", 1) != 0); }

constexpr KernelEntry kScans[] = {{Primitive::cumsum, scan<scalar::add>},
                                  {Primitive::cumprod, scan<scalar::mul>},
                                  {Primitive::sort, sort},
                                  {Primitive::topk, topk},
                                  {Primitive::argmax, arg_extreme<true>},
                                  {Primitive::argmin, arg_extreme<false>},
                                  {Primitive::prod, prod}};

}  // namespace

KernelTable scans() { return kScans; }

}  // namespace pw::eager
