// Normal forms of terms: the laws of each kind of term, and a memo. A normal form is a fraction of
// polynomials. Equal forms prove equal values; different forms prove nothing. Each term is
// normalized once, under the facts of that time.
#pragma once

#include <map>

#include "proof/reals/float_laws.hpp"
#include "proof/reals/integer_laws.hpp"
#include "proof/reals/truth_laws.hpp"

namespace pw::proof {

class NormalForms {
 public:
  NormalForms(Terms& terms, Laws laws);
  NormalForms(const NormalForms&) = delete;
  NormalForms& operator=(const NormalForms&) = delete;

  /// Returns the normal form of a term; integers are polynomials modulo 2^k.
  const Fraction& of(TermId term);
  /// Returns the exact value of an integer, and any other term itself.
  const Fraction& value(TermId term);
  /// Returns an operand as the op converts it to its own dtype.
  Fraction operand(TermId term, DType in);
  [[nodiscard]] Field& field() { return field_; }
  [[nodiscard]] const Ranges& ranges() const { return ranges_; }

 private:
  friend class TermLaws;
  Fraction make(TermId term);

  Terms& terms_;
  Field field_;
  Ranges ranges_{field_};
  OrderLaws order_{field_, ranges_};
  Dependence dependence_;
  Sums sums_;
  Residues residues_{field_, sums_};
  IntegerLaws integer_laws_{*this};
  FloatLaws float_laws_{*this};
  TruthLaws truth_laws_{*this};
  std::map<TermId, Fraction> forms_, values_;
};

}  // namespace pw::proof
