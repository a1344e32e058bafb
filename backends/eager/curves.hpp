// Elementwise single-precision functions over arrays. A result depends neither on the element's
// index nor on its neighbours. They use the prelude's polynomials, so their bits equal those of
// generated kernels and of the interpreter.
#pragma once

#include <cstdint>

#include "graph/ops/scalar_functions.hpp"

namespace pw::eager {

/// y[i] = f(x[i]) for i below n; y may be x.
using Curve = void (*)(const float* x, std::int64_t n, float* y);

struct Curves {
#define PW_CURVE(name) Curve name;
  PW_REAL_PRIMITIVES(PW_CURVE)
#undef PW_CURVE
  void (*pow)(const float* x, const float* z, std::int64_t n, float* y);
};

/// Returns the functions for this machine's instruction set.
[[nodiscard]] const Curves& curves();

}  // namespace pw::eager

namespace pw {

// Compiled per instruction set like gemm_kernel.hpp; eager.cpp selects the variant.
namespace portable {
eager::Curves curves();
}
namespace avx2 {
eager::Curves curves();
}
namespace avx512 {
eager::Curves curves();
}

}  // namespace pw
