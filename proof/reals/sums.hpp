// Sums over indices, and substitution for an index.
// An index is bound by an atom of kind sum, whose `level` is its first index and whose `at` holds
// the extents. sums.cpp describes the normal form.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "proof/reals/dependence.hpp"
#include "proof/reals/order_laws.hpp"

namespace pw::proof {

class Sums {
 public:
  /// One summation index: its name (a level) and its number of values.
  struct Index {
    std::uint32_t level;
    Ix extent;
  };
  using Indices = std::vector<Index>;
  Sums(Integers& integers, Field& field, Ranges& ranges, OrderLaws& order, Dependence& dependence)
      : integers_(integers),
        field_(field),
        ranges_(ranges),
        order_(order),
        dependence_(dependence) {}

  /// Returns the sum of a body over one index, in normal form.
  Fraction sum(const Fraction& body, std::uint32_t level, Ix extent);
  /// Returns the sum over several indices at once. No denominator may contain one of them.
  Fraction sum_over(Indices indices, const Fraction& body);
  /// Returns a lambda of a body with one index, named canonically.
  Fraction bound(const std::string& name, const Fraction& body, std::uint32_t level, Ix extent);
  /// Returns the extreme of a body over one index. Nested extremes of one name commute.
  Fraction extreme(const std::string& name, const Fraction& body, std::uint32_t level, Ix extent);
  /// Returns a sum's body with fresh names for its indices.
  std::optional<Fraction> opened(const Atom& sum, Indices& indices);
  /// Converts a product of sizes to a product of atoms, so that a sum over it equals nested sums
  /// over its factors.
  Fraction extent_of(Ix extent);

 private:
  // Substitution; nothing if the index occurs where it cannot be replaced.
  std::optional<Fraction> replaced(const Fraction& f, std::uint32_t level, Ix with);
  std::optional<Fraction> replaced(Factor factor, std::uint32_t level, Ix with);
  std::optional<Fraction> replaced_clauses(const Fraction& f, std::uint32_t level, Ix with);
  std::optional<Fraction> replaced_sum(const Atom& sum, std::uint32_t level, Ix with);
  Fraction sum_of_product(const Indices& indices, const Monomial& monomial);
  /// The sum of a product in which every index is connected with every other one.
  Fraction tied_sum(const Indices& indices, const Monomial& product);
  std::optional<Fraction> renumbered(const Indices& indices, const Monomial& product);
  void collect_divisors(Factor factor, std::uint32_t level, std::set<Ix>& out);

  Integers& integers_;
  Field& field_;
  Ranges& ranges_;
  OrderLaws& order_;
  Dependence& dependence_;
  std::uint32_t loose_ = 0;  ///< counter for fresh names
};

}  // namespace pw::proof
