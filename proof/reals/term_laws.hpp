// Helpers for the laws of all kinds of terms.
#pragma once

#include "proof/reals/residues.hpp"

namespace pw::proof {

class NormalForms;

class TermLaws {
 protected:
  explicit TermLaws(NormalForms& forms);
  /// Returns an atom for an operation on floats without laws.
  Fraction without_laws(const Term& term);

  Terms& terms_;
  Integers& integers_;
  Field& field_;
  Ranges& ranges_;
  OrderLaws& order_;
  Dependence& dependence_;
  Sums& sums_;
  Residues& residues_;
  NormalForms& forms_;
};

}  // namespace pw::proof
