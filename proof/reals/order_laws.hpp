// Laws of maxima, minima, absolute values, and comparisons with 0.
// Floats are reals here and integers have their exact values. Clauses are a conjunctive normal
// form; the sets make order and repetition irrelevant: max(a, b), max(b, a), and max(a, max(b, a))
// are one.
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
  /// Inverse of of_clauses, up to a factor.
  Clauses clauses_of(const Fraction& fraction);
  /// Requires at least one clause, and a literal in each.
  Fraction of_clauses(Clauses clauses, bool whole);
  /// Removes literals and clauses that decide nothing.
  void absorb(Clauses& clauses);

 private:
  static Clauses either(const Clauses& a, const Clauses& b);
  static Clauses dual(const Clauses& clauses);
  [[nodiscard]] bool is_boolean(const Fraction& x) const;
  /// False means unknown.
  bool below(FractionId a, FractionId b);

  Field& field_;
  Ranges& ranges_;
};

}  // namespace pw::proof
