// Exports the pointwise kernels on reals: runs are converted to f32 (f64 for f64), computed, by
// Eigen where an element's value is the same at each place, and rounded back.
#include <Eigen/Core>
#include <concepts>

#include "backends/eager/curves.hpp"
#include "backends/eager/kernels.hpp"
#include "backends/scalar.hpp"

namespace pw::eager {
namespace {

using Done = Result<std::monostate>;
constexpr std::int64_t kRun = 1024;

template <class T>
using Out = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class T>
using In = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class A>
using ScalarOf = typename A::Scalar;

struct Add {
  static auto of(auto& a, auto& b) { return a + b; }
};
struct Sub {
  static auto of(auto& a, auto& b) { return a - b; }
};
struct Mul {
  static auto of(auto& a, auto& b) { return a * b; }
};
struct Div {
  static auto of(auto& a, auto& b) { return a / b; }
};
struct Eq {
  template <class A>
  static auto of(A& a, A& b) {
    return (a == b).template cast<ScalarOf<A>>();
  }
};
struct Ne {
  template <class A>
  static auto of(A& a, A& b) {
    return (a != b).template cast<ScalarOf<A>>();
  }
};
struct Lt {
  template <class A>
  static auto of(A& a, A& b) {
    return (a < b).template cast<ScalarOf<A>>();
  }
};
struct Le {
  template <class A>
  static auto of(A& a, A& b) {
    return (a <= b).template cast<ScalarOf<A>>();
  }
};
struct Gt {
  template <class A>
  static auto of(A& a, A& b) {
    return (a > b).template cast<ScalarOf<A>>();
  }
};
struct Ge {
  template <class A>
  static auto of(A& a, A& b) {
    return (a >= b).template cast<ScalarOf<A>>();
  }
};
struct Neg {
  static auto of(auto& a) { return -a; }
};
struct Abs {
  static auto of(auto& a) { return a.abs(); }
};
struct Same {
  static auto of(auto& a) { return a; }
};

// What Eigen computes of whole vectors by other means than of what is left over, goes element by
// element: a value must not depend on its place. One function over arrays each.
template <class F, std::size_t N>
struct Each {
  template <class T>
  static void run(const T* const (&in)[3], std::int64_t n, T* out) {
    for (std::int64_t i = 0; i < n; ++i) {
      if constexpr (N == 1) out[i] = F::template of<T>(in[0][i]);
      if constexpr (N == 2) out[i] = F::template of<T>(in[0][i], in[1][i]);
    }
  }
};
using Maximum = Each<scalar::Maximum, 2>;
using Minimum = Each<scalar::Minimum, 2>;
using Sqrt = Each<scalar::Sqrt, 1>;
using Rsqrt = Each<scalar::Rsqrt, 1>;

template <class F, Curve Curves::* curve>
struct Curved {
  static void run(const float* const (&in)[3], std::int64_t n, float* out) {
    (curves().*curve)(in[0], n, out);
  }
  static void run(const double* const (&in)[3], std::int64_t n, double* out) {
    Each<F, 1>::run(in, n, out);
  }
};
using Exp = Curved<scalar::Exp, &Curves::exp>;
using Log = Curved<scalar::Log, &Curves::log>;
using Tanh = Curved<scalar::Tanh, &Curves::tanh>;
using Sin = Curved<scalar::Sin, &Curves::sin>;
using Cos = Curved<scalar::Cos, &Curves::cos>;

struct Pow {
  static void run(const float* const (&in)[3], std::int64_t n, float* out) {
    curves().pow(in[0], in[1], n, out);
  }
  static void run(const double* const (&in)[3], std::int64_t n, double* out) {
    Each<scalar::Pow, 2>::run(in, n, out);
  }
};

template <class T, class F>
concept OverArrays =
    requires(const T* const (&in)[3], std::int64_t n, T* out) { F::run(in, n, out); };

template <class T>
constexpr DType kOwn = sizeof(T) == 4 ? DType::f32 : DType::f64;

/// A run as T: in place where it is stored so, else converted into the buffer.
template <class T>
const T* fetch(const Array& x, std::int64_t offset, std::int64_t step, std::int64_t n, T* buffer) {
  if (x.dtype == kOwn<T> && step == 1) return reinterpret_cast<const T*>(x.at(offset));
  load_run(x.dtype, x.at(offset), step, n, buffer);
  return buffer;
}

template <class T, class F, std::size_t N>
void compute(const T* const (&in)[3], std::int64_t n, T* out) {
  if constexpr (OverArrays<T, F>) {
    F::run(in, n, out);
  } else {
    Out<T> y(out, n);
    const In<T> a(in[0], n), b(in[N > 1 ? 1 : 0], n), c(in[N > 2 ? 2 : 0], n);
    if constexpr (N == 1) y = F::of(a);
    if constexpr (N == 2) y = F::of(a, b);
    if constexpr (N == 3) y = (a != T(0)).select(b, c);
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
    if (y.dtype == kOwn<T> && run.steps[N] == 1)  // computed where it belongs
      return compute<T, F, N>(in, run.length, reinterpret_cast<T*>(target));
    compute<T, F, N>(in, run.length, out);
    store_run(y.dtype, target, run.steps[N], run.length, out);
  });
}

template <class T, class F, std::size_t N>
Done loop(Call& call) {
  Array& y = call.result();
  std::vector<Extents> strides;
  for (const Array* x : call.operands) strides.push_back(broadcast_strides(*x, y.extents));
  strides.push_back(y.strides);
  over_rows(y, [&](std::int64_t begin, std::int64_t end) {
    loop_rows<T, F, N>(call, strides, begin, end);
  });
  return Done{};
}

template <class F, std::size_t N>
Done kernel(Call& call) {
  const DType common = call.common_dtype(N == 3 ? 1 : 0);
  if (!is_float(common)) return run_integers(call);
  return common == DType::f64 ? loop<double, F, N>(call) : loop<float, F, N>(call);
}
/// Of an op that makes reals of integers too.
template <class F>
Done real_kernel(Call& call) {
  const DType dtype = call.operand_dtype(0);
  return is_float(dtype) && dtype != DType::f64 ? loop<float, F, 1>(call)
                                                : loop<double, F, 1>(call);
}

Done cast(Call& call) {
  const DType from = call.operand_dtype(0), to = call.result_dtype();
  if (!is_float(from) && !is_float(to)) return run_integers(call);
  const bool single = is_float(from) && is_float(to) && from != DType::f64 && to != DType::f64;
  return single ? loop<float, Same, 1>(call) : loop<double, Same, 1>(call);
}

constexpr KernelEntry kPointwise[] = {
    {"add", kernel<Add, 2>},         {"sub", kernel<Sub, 2>},       {"mul", kernel<Mul, 2>},
    {"div", kernel<Div, 2>},         {"pow", kernel<Pow, 2>},       {"maximum", kernel<Maximum, 2>},
    {"minimum", kernel<Minimum, 2>}, {"eq", kernel<Eq, 2>},         {"ne", kernel<Ne, 2>},
    {"lt", kernel<Lt, 2>},           {"le", kernel<Le, 2>},         {"gt", kernel<Gt, 2>},
    {"ge", kernel<Ge, 2>},           {"select", kernel<Same, 3>},   {"neg", kernel<Neg, 1>},
    {"abs", kernel<Abs, 1>},         {"bitwise_and", run_integers}, {"bitwise_or", run_integers},
    {"bitwise_not", run_integers},   {"sqrt", real_kernel<Sqrt>},   {"rsqrt", real_kernel<Rsqrt>},
    {"exp", real_kernel<Exp>},       {"log", real_kernel<Log>},     {"tanh", real_kernel<Tanh>},
    {"sin", real_kernel<Sin>},       {"cos", real_kernel<Cos>},     {"cast", cast},
};

}  // namespace

KernelTable pointwise() { return kPointwise; }

}  // namespace pw::eager
