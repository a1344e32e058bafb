// Normal forms of operations with a boolean result.
// The result is a polynomial over 0/1 atoms; see truth_laws.cpp for the encoding.
#pragma once

#include "proof/reals/term_laws.hpp"

namespace pw::proof {

class TruthLaws : TermLaws {
 public:
  explicit TruthLaws(NormalForms& forms) : TermLaws(forms) {}

  /// Converts an operation to a polynomial that is 0 or 1.
  Fraction of(const Term& term);
  /// Converts a sum of booleans: true if their integer sum is positive.
  Fraction any_of(const Term& term);

 private:
  Fraction of_integers(const Term& term);
  Fraction equal_integers(const Term& term);
};

}  // namespace pw::proof
