// Exports curves, once for each instruction set: this file is compiled several times, with PW_GEMM
// naming the variant, as gemm_kernel.cpp is. Without contraction of products and sums: the prelude
// says where a product and a sum are rounded once.
#include <bit>
#include <cmath>

#include "backends/eager/curves.hpp"

#define __device__
#define __forceinline__ inline

namespace pw::PW_GEMM {
namespace {

using std::fabs, std::sqrt, std::exp, std::log, std::tanh, std::sin, std::cos, std::pow;

[[maybe_unused]] unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
[[maybe_unused]] float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
[[maybe_unused]] long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
[[maybe_unused]] double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

#include "backends/cuda/prelude.cu"

template <float (*f)(float)>
void each(const float* x, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

void powers(const float* x, const float* z, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = pw_pow(x[i], z[i]);
}

}  // namespace

eager::Curves curves() {
  return {each<pw_exp>, each<pw_log>, each<pw_tanh>, each<pw_sin>, each<pw_cos>, powers};
}

}  // namespace pw::PW_GEMM
