#include "discover/field.hpp"

#include <bit>
#include <cmath>

namespace pw::discover {

Residue residue_of(double number) {
  if (!std::isfinite(number)) return unknown(std::bit_cast<std::uint64_t>(number), {});
  int exponent = 0;
  const double fraction = std::frexp(std::abs(number), &exponent);
  const auto mantissa = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
  exponent -= 53;
  const Residue scale = power(2, static_cast<std::uint64_t>(std::abs(exponent)));
  const Residue out = times(reduced(mantissa), exponent < 0 ? inverse(scale) : scale);
  return number < 0 ? minus(0, out) : out;
}

}  // namespace pw::discover
