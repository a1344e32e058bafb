// Laws of maxima, minima, absolute values, and comparisons with 0.
#pragma once

#include <set>
#include <string>

#include "proof/reals/ranges.hpp"

namespace pw::proof {

using Clauses = std::set<std::set<FractionId>>;  ///< the minimum of maxima, as a set of sets

class OrderLaws {
 public:
  OrderLaws(Field& field, Ranges& ranges) : field_(field), ranges_(ranges) {}

  /// Returns the maximum or minimum. `whole`: both are integers, and the result stays one.
  Fraction extreme(bool greatest, const Fraction& a, const Fraction& b, bool whole = false);
  Fraction absolute(const Fraction& x);
  /// Returns 1 if x > 0, otherwise 0.
  Fraction positive_sign(const Fraction& x, bool whole = false);
  Fraction is_zero(const Fraction& x);
  /// Returns 1 if the exact difference of integers is 0, otherwise 0.
  Fraction unsigned_zero(const std::string& name, const Fraction& difference);

  [[nodiscard]] bool is_extreme(Factor factor) const;
  Clauses clauses_of(const Fraction& fraction);
  Fraction of_clauses(Clauses clauses, bool whole);
  /// Removes literals and clauses that decide nothing.
  void absorb(Clauses& clauses);

 private:
  static Clauses either(const Clauses& a, const Clauses& b);
  static Clauses dual(const Clauses& clauses);
  bool below(FractionId a, FractionId b);

  Field& field_;
  Ranges& ranges_;
};

}  // namespace pw::proof
