// This file is compiled several times, with PW_GEMM naming the variant, as gemm_kernel.cpp is.
// Without contraction of products and sums: the prelude says where a product and a sum are rounded
// once.
#include <bit>
#include <cmath>

#include "backends/eager/curves.hpp"

namespace pw::PW_GEMM {
namespace {

#include "backends/host_prelude.inc"

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
