// Bounds of integer polynomials.
#pragma once

#include <map>

#include "algebra/interval.hpp"
#include "proof/reals/field.hpp"

namespace pw::proof {

using RationalInterval = Interval<Rational>;

[[nodiscard]] RationalInterval range_of(DType dtype);

class Ranges {
 public:
  explicit Ranges(const Field& field) : field_(field) {}

  /// Returns an interval that contains every value; unbounded if nothing is known.
  [[nodiscard]] RationalInterval interval(const Polynomial& p) const;
  [[nodiscard]] RationalInterval interval(const Fraction& f) const;
  /// Returns the atom after storing its range.
  Fraction with_range(Fraction atom, RationalInterval range);
  /// Gives an atom the range of another, unless that has none.
  void copy(Factor from, Factor to);

 private:
  const Field& field_;
  std::map<Factor, RationalInterval> ranges_;
};

}  // namespace pw::proof
