// Exports functions of the prelude. Compiled without contraction of products and sums.
#include "backends/single.hpp"

#include <bit>
#include <cmath>

#define __device__
#define __forceinline__ inline

namespace pw::single {
namespace {

using std::fabs, std::sqrt, std::exp, std::log, std::tanh, std::sin, std::cos, std::pow;

[[maybe_unused]] unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
[[maybe_unused]] float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
[[maybe_unused]] long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
[[maybe_unused]] double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

#include "backends/cuda/prelude.cu"

}  // namespace

float exp(float x) { return pw_exp(x); }
float log(float x) { return pw_log(x); }
float tanh(float x) { return pw_tanh(x); }
float sin(float x) { return pw_sin(x); }
float cos(float x) { return pw_cos(x); }
float pow(float x, float y) { return pw_pow(x, y); }
std::int64_t pow(std::int64_t x, std::int64_t y) {
  return pw_pow(static_cast<long long>(x), static_cast<long long>(y));
}

}  // namespace pw::single
