// Normal forms of integer terms.
// There are two views of a term: `of` is its polynomial modulo 2^k, which all ring operations read.
// `value` is the exact integer that is stored, which order, division, and conversions to other
// widths read.
#pragma once

#include "proof/reals/term_laws.hpp"

namespace pw::proof {

class IntegerLaws : TermLaws {
 public:
  explicit IntegerLaws(NormalForms& forms) : TermLaws(forms) {}

  /// Returns the polynomial modulo 2^k.
  Fraction of(const Term& term);
  /// Returns the exact value.
  Fraction value(TermId id);

 private:
  Fraction call(const Term& term);
  std::optional<Fraction> by_number(const Term& term);
  /// `range` bounds the atom's value.
  Fraction plain(const Term& term, RationalInterval range);
  Fraction cast(const Term& term);
  /// Returns the exact integer that a float term equals for all inputs; nothing if unknown.
  std::optional<Fraction> whole_number(TermId term);
  Fraction magnitude(const Term& term);
  Fraction division(const Term& term);
  Fraction reduce(const Term& term);
  Fraction extreme_over(bool greatest, const Fraction& body, const Sums::Index& index);
};

}  // namespace pw::proof
