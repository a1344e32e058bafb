// Exports source_file: what stands around a kernel's text.
#include <fmt/format.h>

#include "backends/cpu/emitter.hpp"
#include "backends/cuda/emitter.hpp"

namespace pw::cpu {
namespace {

// The names of CUDA that the prelude uses, and the C library's mathematics, without headers.
constexpr std::string_view kPrologue = R"text(
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
template <class To, class From>
static inline To pw_same_bits(From x) {
  To y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
static inline unsigned __float_as_uint(float x) { return pw_same_bits<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return pw_same_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return pw_same_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return pw_same_bits<double>(x); }
extern "C" {
float sqrtf(float), sinf(float), cosf(float), powf(float, float);
double fabs(double), sqrt(double), exp(double), log(double), tanh(double), sin(double), cos(double);
double pow(double, double);
}
)text";

// After the prelude: the fixed tree over a row in memory, what a lane adds and how lanes meet; and
// reductions for the vector unit, in any order.
constexpr std::string_view kRows = R"text(
template <class T, class F>
static T pw_folded(T* lane, long long lanes) {
  for (long long far = lanes / 2; far > 0; far /= 2)
    for (long long i = 0; i < far; ++i) lane[i] = F::of(lane[i], lane[i + far]);
  return lane[0];
}
template <class T, class F>
static T pw_reduced(const T* x, long long width) {
  const long long lanes = pw_lanes(width);
  T lane[256];
  for (long long q = 0; q < lanes; ++q) {
    T a = F::start();
    for (long long c = q * 8; c < width; c += lanes * 8) {
      const long long e = c + 8 < width ? c + 8 : width;
      for (long long i = c; i < e; ++i) a = F::of(a, x[i]);
    }
    lane[q] = a;
  }
  return pw_folded<T, F>(lane, lanes);
}
#pragma omp declare reduction(pw_sum : float, double, long long : omp_out = pw_add(omp_out, omp_in)) initializer(omp_priv = 0)
#pragma omp declare reduction(pw_amax : float : omp_out = pw_maximum(omp_out, omp_in)) initializer(omp_priv = pw_amax<float>::start())
#pragma omp declare reduction(pw_amax : double : omp_out = pw_maximum(omp_out, omp_in)) initializer(omp_priv = pw_amax<double>::start())
#pragma omp declare reduction(pw_amax : long long : omp_out = pw_maximum(omp_out, omp_in)) initializer(omp_priv = pw_amax<long long>::start())
#pragma omp declare reduction(pw_amin : float : omp_out = pw_minimum(omp_out, omp_in)) initializer(omp_priv = pw_amin<float>::start())
#pragma omp declare reduction(pw_amin : double : omp_out = pw_minimum(omp_out, omp_in)) initializer(omp_priv = pw_amin<double>::start())
#pragma omp declare reduction(pw_amin : long long : omp_out = pw_minimum(omp_out, omp_in)) initializer(omp_priv = pw_amin<long long>::start())
)text";

}  // namespace

std::string source_file(std::string_view kernel) {
  return fmt::format("{}{}{}{}", kPrologue, cuda::prelude(), kRows, kernel);
}

}  // namespace pw::cpu
