// The functions of single precision that are polynomials of the prelude: the very text that
// generated kernels are made of, compiled into this program.
#pragma once

namespace pw::single {

[[nodiscard]] float exp(float x);
[[nodiscard]] float log(float x);
[[nodiscard]] float tanh(float x);
[[nodiscard]] float sin(float x);
[[nodiscard]] float cos(float x);
[[nodiscard]] float pow(float x, float y);

}  // namespace pw::single
