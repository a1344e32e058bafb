// Bounds of integer polynomials, by interval arithmetic on their monomials (Moore 1966).
// Invariant: the interval contains every value. It may be wider, since each occurrence of an atom
// varies independently. An atom without a known range is unbounded, except that booleans are 0
// or 1.
#include "proof/reals/ranges.hpp"

namespace pw::proof {

/// Floats are unbounded: over the reals, no number is the largest.
RationalInterval range_of(DType dtype) {
  switch (dtype) {
    case DType::b8: return {0, 1};
    case DType::u8: return {0, 255};
    case DType::i8: return {-128, 127};
    case DType::i32: return {INT32_MIN, INT32_MAX};
    case DType::i64: return {INT64_MIN, INT64_MAX};
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64: break;
  }
  return {};
}

/// Negative or large powers have no bound here. x - x is exact, since equal monomials cancel
/// before.
RationalInterval Ranges::interval(const Polynomial& p) const {
  constexpr int kMostPowers = 63;
  RationalInterval sum = RationalInterval::point(0);
  for (const auto& [monomial, factor] : p) {
    RationalInterval product = RationalInterval::point(factor);
    for (const auto& [atom, power] : monomial) {
      RationalInterval range;
      if (field_.atom(atom).boolean) range = {0, 1};
      if (const auto known = ranges_.find(atom); known != ranges_.end()) range = known->second;
      if (power < 0 || power > kMostPowers) return {};
      product = product * range.power(power);
    }
    sum = sum + product;
  }
  return sum;
}

// Only polynomials are bounded: a quotient has the unbounded interval.
RationalInterval Ranges::interval(const Fraction& f) const {
  if (f.under != number(1).under) return {};
  return interval(f.over);
}

/// Requires a single atom. A later range of the same atom replaces the earlier one.
Fraction Ranges::with_range(Fraction atom, RationalInterval range) {
  ranges_.insert_or_assign(atom.over.begin()->first.begin()->first, range);
  return atom;
}

/// Used after a substitution for an index, which keeps the set of possible values.
void Ranges::copy(Factor from, Factor to) {
  const auto range = ranges_.find(from);
  if (range != ranges_.end()) ranges_.emplace(to, RationalInterval(range->second));
}

}  // namespace pw::proof
