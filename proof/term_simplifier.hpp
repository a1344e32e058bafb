// Rewrites of terms that preserve bits in every dtype.
// A rewrite may assume nothing about sizes, facts, or values: it must hold for all inputs,
// including NaN, infinities, both zeros, and numbers that overflow.
#pragma once

#include "proof/terms.hpp"

namespace pw::proof {

class TermSimplifier {
 public:
  explicit TermSimplifier(Terms& terms) : terms_(terms) {}
  /// Returns the simplest known term equal to a call.
  /// Requires simplified arguments. Terms::make calls it once for each distinct call.
  TermId simplified(Term term);

 private:
  std::optional<TermId> of_any_dtype(const Term& term);
  std::optional<TermId> below_extreme(const Term& term);
  TermId cast(Term term);
  /// Sets Terms::any_zero(), which verdicts report as an assumption.
  void order_is_lost(const Term& term);
  void commute(Term& term);
  std::optional<TermId> taken_again(const Term& term);
  std::optional<TermId> simplify_sign(const Term& term);
  std::optional<TermId> simplify_select(const Term& term);
  [[nodiscard]] std::optional<TermId> simplify_extreme(const Term& term);
  std::optional<TermId> simplify_product(const Term& term);
  std::optional<TermId> simplify_integers(const Term& term);
  /// Matches `op(x, value)` or `op(value, x)` and returns x; nothing if x would have to be
  /// converted.
  [[nodiscard]] std::optional<TermId> operand_with(const Term& term, double value) const;
  [[nodiscard]] bool is_number(TermId id, double value) const;
  [[nodiscard]] const Term& arg(const Term& term, std::size_t i) const {
    return terms_[term.args[i]];
  }
  [[nodiscard]] bool same_dtype(const Term& term, std::size_t i) const {
    return arg(term, i).dtype == term.dtype;
  }

  Terms& terms_;
};

}  // namespace pw::proof
