// The functions of the prelude that no library has: those of single precision, which are
// polynomials, and the power of integers. The very text that generated kernels are made of,
// compiled into this program.
#pragma once

#include <cstdint>

namespace pw::single {

[[nodiscard]] float exp(float x);
[[nodiscard]] float log(float x);
[[nodiscard]] float tanh(float x);
[[nodiscard]] float sin(float x);
[[nodiscard]] float cos(float x);
[[nodiscard]] float pow(float x, float y);
[[nodiscard]] std::int64_t pow(std::int64_t x, std::int64_t y);  ///< wraps around

}  // namespace pw::single
