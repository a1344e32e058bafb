// Converts runs to f32 (f64 for f64), computes, and rounds back. Uses Eigen if an element's value
// does not depend on its position.
#include <Eigen/Core>
#include <concepts>

#include "backends/eager/curves.hpp"
#include "backends/eager/kernels.hpp"
#include "graph/ops/scalar_functions.hpp"

namespace pw::eager {
namespace {

constexpr std::int64_t kRun = 1024;

template <class T>
using Out = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class T>
using In = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class A>
using ScalarOf = typename A::Scalar;

template <class F>
struct Each {
  template <class T>
  static void run(const T* const (&in)[3], std::int64_t n, T* out) {
    for (std::int64_t i = 0; i < n; ++i) {
      if constexpr (requires { F::of(in[0][i]); }) out[i] = F::of(in[0][i]);
      if constexpr (requires { F::of(in[0][i], in[1][i]); }) out[i] = F::of(in[0][i], in[1][i]);
    }
  }
};
/// Computes element by element. Primitives have an array form below if Eigen, or a curve, is faster
/// and its results do not depend on the position.
template <class F>
struct Vectors : Each<F> {};
template <>
struct Vectors<scalar::add> {
  static auto of(auto& a, auto& b) { return a + b; }
};
template <>
struct Vectors<scalar::sub> {
  static auto of(auto& a, auto& b) { return a - b; }
};
template <>
struct Vectors<scalar::mul> {
  static auto of(auto& a, auto& b) { return a * b; }
};
template <>
struct Vectors<scalar::div> {
  static auto of(auto& a, auto& b) { return a / b; }
};
template <>
struct Vectors<scalar::eq> {
  template <class A>
  static auto of(A& a, A& b) {
    return (a == b).template cast<ScalarOf<A>>();
  }
};
template <>
struct Vectors<scalar::ne> {
  template <class A>
  static auto of(A& a, A& b) {
    return (a != b).template cast<ScalarOf<A>>();
  }
};
template <>
struct Vectors<scalar::lt> {
  template <class A>
  static auto of(A& a, A& b) {
    return (a < b).template cast<ScalarOf<A>>();
  }
};
template <>
struct Vectors<scalar::le> {
  template <class A>
  static auto of(A& a, A& b) {
    return (a <= b).template cast<ScalarOf<A>>();
  }
};
template <>
struct Vectors<scalar::gt> {
  template <class A>
  static auto of(A& a, A& b) {
    return (a > b).template cast<ScalarOf<A>>();
  }
};
template <>
struct Vectors<scalar::ge> {
  template <class A>
  static auto of(A& a, A& b) {
    return (a >= b).template cast<ScalarOf<A>>();
  }
};
template <>
struct Vectors<scalar::select> {
  static auto of(auto& mask, auto& a, auto& b) { return (mask != 0).select(a, b); }
};
template <>
struct Vectors<scalar::neg> {
  static auto of(auto& a) { return -a; }
};
template <>
struct Vectors<scalar::abs> {
  static auto of(auto& a) { return a.abs(); }
};
template <>
struct Vectors<scalar::Same> {
  static auto of(auto& a) { return a; }
};

template <class F, Curve Curves::* curve>
struct Curved {
  static void run(const float* const (&in)[3], std::int64_t n, float* out) {
    (curves().*curve)(in[0], n, out);
  }
  static void run(const double* const (&in)[3], std::int64_t n, double* out) {
    Each<F>::run(in, n, out);
  }
};
#define PW_CURVED(name) \
  template <>           \
  struct Vectors<scalar::name> : Curved<scalar::name, &Curves::name> {};
PW_REAL_PRIMITIVES(PW_CURVED)
#undef PW_CURVED

template <>
struct Vectors<scalar::pow> {
  static void run(const float* const (&in)[3], std::int64_t n, float* out) {
    curves().pow(in[0], in[1], n, out);
  }
  static void run(const double* const (&in)[3], std::int64_t n, double* out) {
    Each<scalar::pow>::run(in, n, out);
  }
};

template <class T, class F>
concept OverArrays =
    requires(const T* const (&in)[3], std::int64_t n, T* out) { Vectors<F>::run(in, n, out); };

/// Returns a run as T: in place if stored as T, otherwise converted into the buffer.
template <class T>
const T* fetch(const Array& x, std::int64_t offset, std::int64_t step, std::int64_t n, T* buffer) {
  if (x.dtype == kStoredAs<T> && step == 1) return reinterpret_cast<const T*>(x.at(offset));
  load_run(x.dtype, x.at(offset), step, n, buffer);
  return buffer;
}

template <class T, class F, std::size_t N>
void compute(const T* const (&in)[3], std::int64_t n, T* out) {
  if constexpr (OverArrays<T, F>) {
    Vectors<F>::run(in, n, out);
  } else {
    Out<T> y(out, n);
    const In<T> a(in[0], n), b(in[N > 1 ? 1 : 0], n), c(in[N > 2 ? 2 : 0], n);
    if constexpr (N == 1) y = Vectors<F>::of(a);
    if constexpr (N == 2) y = Vectors<F>::of(a, b);
    if constexpr (N == 3) y = Vectors<F>::of(a, b, c);
  }
}

std::int64_t first_step(const Extents& strides) { return strides.empty() ? 0 : strides[0]; }

template <class T, class F, std::size_t N>
void loop_rows(Call& call, const std::vector<Extents>& strides, std::int64_t begin,
               std::int64_t end) {
  const Array& y = call.results[0];
  Extents part = y.extents;
  if (!part.empty()) part[0] = end - begin;
  alignas(64) T buffers[N][kRun];
  alignas(64) T out[kRun];
  for_each_run(part, strides, kRun, [&](const Run& run) {
    const T* in[3] = {};
    for (std::size_t i = 0; i < N; ++i) {
      in[i] = fetch(call.operand(i), run.offsets[i] + begin * first_step(strides[i]), run.steps[i],
                    run.length, buffers[i]);
    }
    std::byte* target = y.at(run.offsets[N] + begin * first_step(strides[N]));
    if (y.dtype == kStoredAs<T> && run.steps[N] == 1)  // computed in place
      return compute<T, F, N>(in, run.length, reinterpret_cast<T*>(target));
    compute<T, F, N>(in, run.length, out);
    store_run(y.dtype, target, run.steps[N], run.length, out);
  });
}

template <class T, class F, std::size_t N>
Status loop(Call& call) {
  Array& y = call.result();
  std::vector<Extents> strides;
  for (const Array* x : call.operands) strides.push_back(broadcast_strides(*x, y.extents));
  strides.push_back(y.strides);
  over_rows(y, [&](std::int64_t begin, std::int64_t end) {
    loop_rows<T, F, N>(call, strides, begin, end);
  });
  return {};
}

template <class F, std::size_t N>
Status kernel(Call& call) {
  const DType common = call.common_dtype(N == 3 ? 1 : 0);
  if (!is_float(common)) return run_integers(call);
  return common == DType::f64 ? loop<double, F, N>(call) : loop<float, F, N>(call);
}
/// Runs an op that also accepts integers and returns reals.
template <class F>
Status real_kernel(Call& call) {
  const DType dtype = call.operand_dtype(0);
  return is_float(dtype) && dtype != DType::f64 ? loop<float, F, 1>(call)
                                                : loop<double, F, 1>(call);
}

Status cast(Call& call) {
  const DType from = call.operand_dtype(0), to = call.result_dtype();
  if (!is_float(from) && !is_float(to)) return run_integers(call);
  const bool single = is_float(from) && is_float(to) && from != DType::f64 && to != DType::f64;
  return single ? loop<float, scalar::Same, 1>(call) : loop<double, scalar::Same, 1>(call);
}

#define PW_NUMBERS(name, operands) {Primitive::name, kernel<scalar::name, operands>},
#define PW_INTEGERS(name, operands) {Primitive::name, run_integers},
#define PW_REALS(name) {Primitive::name, real_kernel<scalar::name>},
constexpr KernelEntry kPointwise[] = {PW_NUMBER_PRIMITIVES(PW_NUMBERS) PW_INTEGER_PRIMITIVES(
    PW_INTEGERS) PW_REAL_PRIMITIVES(PW_REALS){Primitive::cast, cast}};
#undef PW_NUMBERS
#undef PW_INTEGERS
#undef PW_REALS

}  // namespace

KernelTable pointwise() { return kPointwise; }

}  // namespace pw::eager
