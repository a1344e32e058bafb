// Compiled without contraction, so that each product and each sum is rounded.
#include <bit>
#include <cmath>

#include "graph/ops/scalar_functions.hpp"

namespace pw::single {
namespace {

#include "tensor/host_prelude.inc"

}  // namespace

#define PW_DEFINED(name) \
  float name(float x) { return pw_##name(x); }
PW_REAL_PRIMITIVES(PW_DEFINED)
#undef PW_DEFINED
float pow(float x, float y) { return pw_pow(x, y); }
std::int64_t pow(std::int64_t x, std::int64_t y) {
  return pw_pow(static_cast<long long>(x), static_cast<long long>(y));
}

}  // namespace pw::single
