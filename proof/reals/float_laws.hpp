// Normal forms of float terms, and of booleans that no operation computes.
// See float_laws.cpp for the laws and what they ignore.
#pragma once

#include "proof/reals/term_laws.hpp"

namespace pw::proof {

class FloatLaws : TermLaws {
 public:
  explicit FloatLaws(NormalForms& forms) : TermLaws(forms) {}

  /// Requires a float, or a boolean that is not a call.
  Fraction of(const Term& term);

 private:
  Fraction square_root(const Fraction& x);
  Fraction exponential(const Fraction& x);
  Fraction call(const Term& term);
  Fraction cast(const Term& term);
  Fraction reduce(const Term& term);
};

}  // namespace pw::proof
