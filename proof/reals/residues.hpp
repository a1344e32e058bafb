// Integer polynomials modulo 2^k.
// Z/2^k is a ring but not an integral domain: 128 x = 0 in u8 does not imply x = 0. No law divides
// here.
#pragma once

#include <map>

#include "proof/reals/sums.hpp"

namespace pw::proof {

class Residues {
 public:
  Residues(Field& field, Sums& sums) : field_(field), sums_(sums) {}

  /// Returns the polynomial modulo 2^k of the dtype, with signed residues as coefficients.
  Fraction wrapped(const Fraction& exact, DType dtype);

 private:
  int exact_bits(Factor factor);
  Fraction modulo(const Fraction& f, int bits);
  Fraction modulo(Factor factor, int bits);

  Field& field_;
  Sums& sums_;
  std::map<Factor, int> exact_bits_;
};

}  // namespace pw::proof
