// Arithmetic modulo the Mersenne prime 2^31 − 1. Sums, products, and quotients are exact, so
// unequal terms of ring operations agree at a random point only with probability about 2^-31
// (Schwartz 1980; Zippel 1979). Any other operation is an uninterpreted random function: equal
// arguments give equal results, without further laws.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "base/hash.hpp"

namespace pw::discover {

using Residue = std::uint32_t;
inline constexpr std::uint64_t kPrime = (std::uint64_t{1} << 31) - 1;

[[nodiscard]] constexpr Residue reduced(std::uint64_t number) {
  return static_cast<Residue>(number % kPrime);
}
[[nodiscard]] constexpr Residue plus(Residue a, Residue b) { return reduced(std::uint64_t{a} + b); }
[[nodiscard]] constexpr Residue minus(Residue a, Residue b) {
  return reduced(std::uint64_t{a} + kPrime - b);
}
[[nodiscard]] constexpr Residue times(Residue a, Residue b) {
  return reduced(std::uint64_t{a} * b);
}
[[nodiscard]] constexpr Residue power(Residue base, std::uint64_t exponent) {
  Residue out = 1;
  for (; exponent > 0; exponent >>= 1, base = times(base, base))
    if ((exponent & 1) != 0) out = times(out, base);
  return out;
}
/// Returns the multiplicative inverse, and 0 for 0.
[[nodiscard]] constexpr Residue inverse(Residue a) { return power(a, kPrime - 2); }

/// Returns the residue of an exact binary fraction.
[[nodiscard]] Residue residue_of(double number);

/// Evaluates the random function identified by `name`.
[[nodiscard]] constexpr Residue unknown(std::uint64_t name,
                                        std::initializer_list<Residue> arguments) {
  std::uint64_t hash = mix(name);
  for (Residue argument : arguments) hash = combine(hash, argument);
  return reduced(hash);
}

/// Returns the position in a random total order of the residues. Extrema in it are idempotent,
/// commutative, and associative, without laws for sums and products.
[[nodiscard]] constexpr std::uint64_t rank_of(Residue a) { return mix(a + 0x5bd1e995ull); }
[[nodiscard]] constexpr Residue larger(Residue a, Residue b) {
  return rank_of(a) >= rank_of(b) ? a : b;
}
[[nodiscard]] constexpr Residue smaller(Residue a, Residue b) {
  return rank_of(a) <= rank_of(b) ? a : b;
}

}  // namespace pw::discover
