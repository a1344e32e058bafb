// Numbers modulo the prime 2^31 - 1. Sums, products and quotients are exact, so that two terms of
// ring operations agree at a random point only if they are equal, but for a chance of about 2^-31
// (Schwartz 1980; Zippel 1979). What is no ring operation is a function drawn at random: equal
// arguments give equal results, and no other law of it is known.
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
/// 0 has none, and stands for its own.
[[nodiscard]] constexpr Residue inverse(Residue a) { return power(a, kPrime - 2); }

/// The residue of an exact binary fraction.
[[nodiscard]] Residue residue_of(double number);

/// A random function of its arguments, one for each `name`.
[[nodiscard]] constexpr Residue unknown(std::uint64_t name,
                                        std::initializer_list<Residue> arguments) {
  std::uint64_t hash = mix(name);
  for (Residue argument : arguments) hash = combine(hash, argument);
  return reduced(hash);
}

/// A total order of the residues, drawn at random: extremes are idempotent, commutative and
/// associative in it, and have no law with sums and products.
[[nodiscard]] constexpr std::uint64_t rank_of(Residue a) { return mix(a + 0x5bd1e995ull); }
[[nodiscard]] constexpr Residue larger(Residue a, Residue b) {
  return rank_of(a) >= rank_of(b) ? a : b;
}
[[nodiscard]] constexpr Residue smaller(Residue a, Residue b) {
  return rank_of(a) <= rank_of(b) ? a : b;
}

}  // namespace pw::discover
