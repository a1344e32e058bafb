// Interval analysis of dims under facts about their symbols.
#pragma once

#include "graph/dim.hpp"

namespace pw {

class DimBounds {
 public:
  DimBounds(const Polynomials& polynomials, const Facts& facts)
      : polynomials_(polynomials), facts_(facts) {}

  [[nodiscard]] Bounds of(DimId id) const;
  /// Returns a number that divides the dim for all values the facts allow; see Dims::known_divisor.
  [[nodiscard]] std::int64_t divisor(DimId id) const;

 private:
  [[nodiscard]] Bounds of_atom(AtomId id, int depth) const;
  [[nodiscard]] Bounds of_terms(DimId id, int depth) const;
  /// Returns the quotient y / k in a monomial whose coefficient c is a multiple of k, or the end.
  [[nodiscard]] Polynomials::Monomial::const_iterator cancelling(const Polynomials::Monomial& m,
                                                                 std::int64_t c) const;
  /// Returns bounds after each k · (y / k) is replaced by y - r, where 0 <= r < k, so that y may
  /// cancel. The constant of y is added to r. Unbounded if the dim has no such quotient.
  [[nodiscard]] Bounds opened(DimId id) const;

  const Polynomials& polynomials_;
  const Facts& facts_;
};

}  // namespace pw
