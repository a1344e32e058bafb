// Equality of terms. Floats are treated as reals without rounding, with laws for exp, maximum,
// comparisons, sums, and casts. With Laws::bits they are atoms without laws.
//
// Integers are machine integers in either mode. A k-bit integer is a polynomial over Z modulo 2^k,
// so sums, products, and narrowing casts reassociate and distribute. Everything else (order,
// division, absolute values, widening casts, casts to floats) is a function of the exact value.
// That value is the polynomial itself if its interval fits the dtype; otherwise it is an atom.
#pragma once

#include <set>

#include "proof/reals/normal_forms.hpp"

namespace pw::proof {

class Reals {
 public:
  explicit Reals(Terms& terms, Laws laws = Laws::reals) : terms_(terms), forms_(terms, laws) {}
  /// Returns true if both are the same function wherever either is defined: over the reals, or bit
  /// for bit.
  bool equal(TermId a, TermId b);
  /// Returns true if the facts in scope require an integer outside its range, so that this case of
  /// indices never occurs.
  bool facts_contradict();
  /// Returns true if the last comparison gave up because its terms grew too large.
  [[nodiscard]] bool too_large() const { return too_large_; }
  /// Returns true if constants were identified that are equal up to rounding only.
  [[nodiscard]] bool identified_constants() { return forms_.field().identified_constants(); }

 private:
  bool some_fact_contradicts();
  void collect_under(TermId term, std::set<FractionId>& out, std::set<TermId>& seen);
  bool agree_at_zeros(TermId a, TermId b, const std::set<FractionId>& zeros);

  Terms& terms_;
  NormalForms forms_;
  bool too_large_ = false;
};

}  // namespace pw::proof
