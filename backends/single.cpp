// Exports functions of the prelude. Compiled without contraction of products and sums.
#include "backends/single.hpp"

#include <bit>
#include <cmath>

namespace pw::single {
namespace {

#include "backends/host_prelude.inc"

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
