// Integer division with other roundings than C++'s, which rounds toward zero.
#pragma once

#include <cstdint>

namespace pw {

/// Returns the number of units that contain a count.
[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit;
}
/// Returns the largest integer that is at most a / b. Requires b ≠ 0 and a quotient in 64 bits.
[[nodiscard]] constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

}  // namespace pw
