// Integer arithmetic over sizes and indices. Expressions are polynomials in normal form over size
// symbols, bounded indices, floor quotients, and integers read from tensors. Sizes are at least 1;
// an index ranges from 0 to its extent − 1. A remainder is stored as a − b · (a / b), so that
// mixed-radix digits recombine without a special rule.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/id.hpp"
#include "graph/dim.hpp"
#include "proof/solver.hpp"

namespace pw::proof {

using Ix = Id<struct IxTag>;

class Integers {
 public:
  explicit Integers(Solver& solver) : solver_(solver) {}

  [[nodiscard]] Solver& solver() const { return solver_; }
  Ix constant(std::int64_t value);
  Ix symbol(std::string_view name);
  /// Returns the index 0 … extent − 1 of a level. Two of one level and extent are identical.
  Ix variable(std::uint32_t level, Ix extent);
  /// Returns the integer that a tensor holds, by the number of its term; it has no bounds.
  Ix value(std::uint32_t term);
  Ix add(Ix a, Ix b);
  Ix sub(Ix a, Ix b);
  Ix mul(Ix a, Ix b);
  Ix div(Ix a, Ix b);  ///< floor quotient; b ≥ 1
  Ix mod(Ix a, Ix b);
  /// Converts a dim to a polynomial; quotients and remainders become atoms of this class.
  Ix of(const Dims& dims, DimId dim);

  /// Adds the fact that an expression is at least 0.
  void assume(Ix nonnegative);
  /// Declares a symbol that may be less than 1.
  void free(std::string_view symbol) { free_.emplace(symbol); }
  struct Mark {
    std::size_t facts;
  };
  [[nodiscard]] Mark mark() const { return {facts_.size()}; }
  void back_to(Mark mark);
  /// Returns the numbers of the facts that proofs used since the last clear.
  [[nodiscard]] const std::set<std::size_t>& used() const { return used_; }
  void forget_used() { used_.clear(); }
  [[nodiscard]] std::size_t fact_count() const { return facts_.size(); }
  [[nodiscard]] const std::vector<Ix>& facts() const { return facts_; }

  /// Returns true if p ≥ 0 is proved; false means unknown.
  bool nonnegative(Ix p);
  bool zero(Ix p) { return p == constant(0) || (nonnegative(p) && nonnegative(negated(p))); }
  bool equal(Ix a, Ix b) { return a == b || zero(sub(a, b)); }
  /// Returns true if some sampled values that satisfy all facts make a and b unequal.
  bool may_differ(Ix a, Ix b) {
    return refuted_by_samples(sub(a, b)) || refuted_by_samples(sub(b, a));
  }
  /// Returns true if the facts are proved inconsistent.
  bool contradictory() { return nonnegative(constant(-1)); }

  /// Returns p with the index of a level replaced.
  Ix substituted(Ix p, std::uint32_t level, Ix with);
  /// Adds the divisors of the index of a level in p to `out`.
  void divisors(Ix p, std::uint32_t level, std::set<Ix>& out);
  /// Returns a / b if it is a polynomial.
  std::optional<Ix> whole_quotient(Ix a, Ix b) { return exact(a, b); }
  [[nodiscard]] std::optional<std::int64_t> number(Ix p) const;
  /// Solves p = 0 for a symbol that occurs in one linear term with coefficient ±1. Returns the
  /// symbol and its solution.
  [[nodiscard]] std::optional<std::pair<std::string, Ix>> solve(Ix p);
  /// Returns the distinct symbols of a single term; nothing if p has another form.
  [[nodiscard]] std::optional<std::vector<std::string>> symbols_of(Ix p) const;
  /// Returns the coefficient of a single-term polynomial.
  [[nodiscard]] std::int64_t factor_of(Ix p) const { return polynomials_[p.index].front().second; }
  /// Linear form: factor · (index of a level) + rest. Absent if the index occurs in a power,
  /// quotient, or product.
  struct Line {
    Ix factor, rest;
  };
  [[nodiscard]] std::optional<Line> line(Ix p, std::uint32_t level);
  [[nodiscard]] bool mentions(Ix p, std::uint32_t level) const;
  /// Adds the numbers of the terms whose values occur in p.
  void collect_values(Ix p, std::set<std::uint32_t>& out) const;
  /// Adds the levels of the indices that occur in p.
  void collect_levels(Ix p, std::set<std::uint32_t>& out) const;
  /// An atom whose value only the caller of `evaluate` can supply.
  struct Unknown {
    enum class Kind : std::uint8_t { symbol, variable, value } kind;
    std::string_view name;  ///< for a symbol
    std::uint32_t number;   ///< level of a variable, or term of a value
    Ix extent;              ///< for a variable
    bool free;              ///< a symbol that may be less than 1
  };
  using Assign = std::function<std::optional<std::int64_t>(const Unknown&)>;
  /// Evaluates p for the given values of unknowns. Returns nothing if one is missing or the result
  /// exceeds 64 bits.
  [[nodiscard]] std::optional<std::int64_t> evaluate(Ix p, const Assign& assign) const;
  [[nodiscard]] std::string print(Ix p) const;
  /// Divides both by the factors common to all their terms.
  std::pair<Ix, Ix> reduced(Ix a, Ix b);
  /// Returns true if a coefficient exceeded 64 bits; nothing is proved after that.
  [[nodiscard]] bool overflowed() const { return overflowed_; }

 private:
  using AtomNumber = std::uint32_t;
  struct Atom {
    enum class Kind : std::uint8_t { symbol, variable, quotient, value } kind = Kind::symbol;
    std::string name;
    std::uint32_t number = 0;  ///< level or term
    Ix a, b;                   ///< extent of an index, or operands of a quotient
    friend auto operator<=>(const Atom&, const Atom&) = default;
  };
  using Monomial = std::vector<AtomNumber>;  ///< sorted, with repetitions
  using Polynomial = std::vector<std::pair<Monomial, std::int64_t>>;

  Ix intern(std::map<Monomial, std::int64_t> terms);
  Ix of_atom(Atom atom);
  Ix of_monomial(const Monomial& monomial, std::int64_t factor);
  Ix negated(Ix p) { return sub(constant(0), p); }
  std::optional<Ix> exact(Ix a, Ix b);
  std::pair<Ix, Ix> split(Ix a, Ix b);
  bool search(Ix p, int depth);
  bool by_facts(Ix p, int depth);
  bool by_fact(Ix p, Ix fact, int depth);
  bool by_extremes(Ix p, int depth);
  bool by_signs(Ix p);
  bool at_least_zero(AtomNumber atom, int depth);
  bool by_solver(Ix p);
  bool refuted_by_samples(Ix p);
  bool fit(std::size_t n);
  bool repair(Ix fact, std::size_t n);
  void forget_dependent(std::size_t n);
  std::optional<std::int64_t> sample(AtomNumber atom, std::size_t n);
  std::optional<std::int64_t> sample(Ix p, std::size_t n);
  void mention(Ix p, std::set<AtomNumber>& out) const;
  SolverTerm encode(Ix p);

  Solver& solver_;
  std::vector<Polynomial> polynomials_;
  struct PolynomialHash {
    std::size_t operator()(const Polynomial& p) const;
  };
  std::unordered_map<Polynomial, Ix, PolynomialHash> ids_;  ///< never iterated
  std::vector<Atom> atoms_;
  std::map<Atom, AtomNumber> atom_ids_;
  std::set<std::string, std::less<>> free_;
  std::vector<Ix> facts_;
  std::set<std::size_t> used_;
  std::map<Ix, bool> known_;
  std::map<std::pair<Ix, Ix>, Ix> quotients_;
  std::set<Ix> open_;  ///< goals of the current search
  std::map<DimId, Ix> dims_;
  std::vector<std::map<AtomNumber, std::optional<std::int64_t>>> samples_;
  std::vector<bool> fits_;  ///< which samples satisfy the facts; empty if not yet computed
  std::size_t steps_ = 0;   ///< steps of one search
  bool overflowed_ = false;
};

}  // namespace pw::proof
