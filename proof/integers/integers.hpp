// Integer arithmetic over sizes and indices, with facts. Expressions are polynomials in normal form
// over size symbols, bounded indices, floor quotients, and integers read from tensors. Sizes are at
// least 1; an index ranges from 0 to its extent − 1. A remainder is stored as a − b · (a / b), so
// that mixed-radix digits recombine without a special rule.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "graph/dim.hpp"
#include "proof/integers/sign_search.hpp"

namespace pw::proof {

class Integers : public IntegerPolynomials {
 public:
  explicit Integers(Solver& solver)
      : solver_(solver), samples_(*this, facts_), search_(*this, facts_, samples_, solver) {}
  Integers(const Integers&) = delete;
  Integers& operator=(const Integers&) = delete;

  [[nodiscard]] Solver& solver() const { return solver_; }
  Ix div(Ix a, Ix b);  ///< floor quotient; b ≥ 1
  Ix mod(Ix a, Ix b);
  /// Converts a dim to a polynomial; quotients and remainders become atoms of this class.
  Ix of(const Dims& dims, DimId dim);

  /// Adds the fact that an expression is at least 0.
  void assume(Ix nonnegative);
  struct Mark {
    std::size_t facts;
  };
  [[nodiscard]] Mark mark() const { return {facts_.list.size()}; }
  void back_to(Mark mark);
  /// Returns the numbers of the facts that proofs used since the last clear.
  [[nodiscard]] const std::set<std::size_t>& used() const { return facts_.used; }
  void forget_used() { facts_.used.clear(); }
  [[nodiscard]] std::size_t fact_count() const { return facts_.list.size(); }
  [[nodiscard]] const std::vector<Ix>& facts() const { return facts_.list; }

  /// Returns true if p ≥ 0 is proved; false means unknown.
  bool nonnegative(Ix p) { return search_.nonnegative(p); }
  bool zero(Ix p) { return p == constant(0) || (nonnegative(p) && nonnegative(negated(p))); }
  bool equal(Ix a, Ix b) { return a == b || zero(sub(a, b)); }
  /// Returns true if some sampled values that satisfy all facts make a and b unequal.
  bool may_differ(Ix a, Ix b) { return samples_.refute(sub(a, b)) || samples_.refute(sub(b, a)); }
  /// Returns true if the facts are proved inconsistent.
  bool contradictory() { return nonnegative(constant(-1)); }

  /// Returns p with the index of a level replaced.
  Ix substituted(Ix p, std::uint32_t level, Ix with);
  /// Adds the divisors of the index of a level in p to `out`.
  void divisors(Ix p, std::uint32_t level, std::set<Ix>& out);

 private:
  /// Forgets what was concluded from other facts.
  void forget_conclusions();

  Solver& solver_;
  IntegerFacts facts_;
  IntegerSamples samples_;
  SignSearch search_;
  std::map<std::pair<Ix, Ix>, Ix> quotients_;
  std::map<DimId, Ix> dims_;
};

}  // namespace pw::proof
