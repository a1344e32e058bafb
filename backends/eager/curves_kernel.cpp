// Compiled once per instruction set: PW_GEMM names the variant, as in gemm_kernel.cpp. Products and
// sums are not contracted, because the prelude defines where each is rounded.
#include <bit>
#include <cmath>

#include "backends/eager/curves.hpp"

namespace pw::PW_GEMM {
namespace {

#include "tensor/host_prelude.inc"

template <float (*f)(float)>
void each(const float* x, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

void powers(const float* x, const float* z, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = pw_pow(x[i], z[i]);
}

}  // namespace

eager::Curves curves() {
#define PW_EACH(name) each<pw_##name>,
  return {PW_REAL_PRIMITIVES(PW_EACH) powers};
#undef PW_EACH
}

}  // namespace pw::PW_GEMM
