// Exports the reductions: each row converted to f32 (f64, int64) and reduced by Eigen.
#include <Eigen/Core>
#include <limits>
#include <type_traits>
#include <vector>

#include "backends/eager/kernels.hpp"

namespace pw::eager {
namespace {

using Done = Result<std::monostate>;
template <class T>
using Row = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;

/// What a row is reduced in without being converted.
template <class T>
constexpr DType kOwn = std::is_same_v<T, float>    ? DType::f32
                       : std::is_same_v<T, double> ? DType::f64
                                                   : DType::i64;

struct Sum {
  template <class T>
  static T of(const Row<T>& x) {
    return x.sum();
  }
};
struct Mean {
  template <class T>
  static T of(const Row<T>& x) {
    return x.size() == 0 ? std::numeric_limits<T>::quiet_NaN() : x.sum() / static_cast<T>(x.size());
  }
};
/// A NaN anywhere makes the result NaN; of nothing it is the smallest number.
struct Amax {
  template <class T>
  static T of(const Row<T>& x) {
    if (x.size() == 0)
      return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                  : std::numeric_limits<T>::lowest();
    return x.template maxCoeff<Eigen::PropagateNaN>();
  }
};
struct Amin {
  template <class T>
  static T of(const Row<T>& x) {
    if (x.size() == 0)
      return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                  : std::numeric_limits<T>::max();
    return x.template minCoeff<Eigen::PropagateNaN>();
  }
};

template <class T, class F>
Done over_axis(Call& call) {
  Array x = call.operand(0);
  Array& y = call.result();
  const std::size_t axis = call.axis("dim", -1, x.rank());
  const std::int64_t width = x.extents[axis], step = x.strides[axis];
  x.extents.erase(x.extents.begin() + static_cast<std::ptrdiff_t>(axis));
  x.strides.erase(x.strides.begin() + static_cast<std::ptrdiff_t>(axis));
  const Extents strides[] = {x.strides, row_major(x.extents)};
  const bool in_place = x.dtype == kOwn<T> && step == 1;
  std::vector<T> row(in_place ? 0 : static_cast<std::size_t>(width)), values;
  for_each_run(x.extents, strides, std::int64_t{1} << 60, [&](const Run& run) {
    values.resize(static_cast<std::size_t>(run.length));
    for (std::int64_t i = 0; i < run.length; ++i) {
      const std::byte* source = x.at(run.offsets[0] + i * run.steps[0]);
      if (!in_place) load_run(x.dtype, source, step, width, row.data());
      const T* begin = in_place ? reinterpret_cast<const T*>(source) : row.data();
      values[static_cast<std::size_t>(i)] = F::template of<T>(Row<T>(begin, width));
    }
    store_run(y.dtype, y.at(run.offsets[1]), run.steps[1], run.length, values.data());
  });
  return Done{};
}

template <class F>
Done reduction(Call& call) {
  const DType dtype = call.operand_dtype(0);
  if (!is_float(dtype)) return over_axis<std::int64_t, F>(call);
  return dtype == DType::f64 ? over_axis<double, F>(call) : over_axis<float, F>(call);
}

constexpr KernelEntry kTable[] = {{"sum", reduction<Sum>},
                                  {"mean", reduction<Mean>},
                                  {"amax", reduction<Amax>},
                                  {"amin", reduction<Amin>}};

}  // namespace

KernelTable reductions() { return kTable; }

}  // namespace pw::eager
