// Whole numbers as polynomials in normal form over symbols of sizes, bounded indices, floor
// quotients and integers that are read from tensors, with what is known of them. Sizes are at least
// 1, an index runs from 0 up to its extent. A remainder is a - b * (a / b), so that digits of mixed
// radix meet again by themselves.
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
  /// An index: 0 … extent - 1. Two of one level and extent are the same.
  Ix variable(std::uint32_t level, Ix extent);
  /// An integer that a tensor holds, by the number of its term; nothing is known of it.
  Ix value(std::uint32_t term);
  Ix add(Ix a, Ix b);
  Ix sub(Ix a, Ix b);
  Ix mul(Ix a, Ix b);
  Ix div(Ix a, Ix b);  ///< rounded down, b at least 1
  Ix mod(Ix a, Ix b);
  /// The polynomial of a dim; quotients and remainders of it are this class's own.
  Ix of(const Dims& dims, DimId dim);

  /// What is taken to be at least 0 from here on.
  void assume(Ix nonnegative);
  /// A symbol that may be less than 1.
  void free(std::string_view symbol) { free_.emplace(symbol); }
  struct Mark {
    std::size_t facts;
  };
  [[nodiscard]] Mark mark() const { return {facts_.size()}; }
  void back_to(Mark mark);
  /// The facts that proofs rested on since this was last cleared, by their number.
  [[nodiscard]] const std::set<std::size_t>& used() const { return used_; }
  void forget_used() { used_.clear(); }
  [[nodiscard]] std::size_t fact_count() const { return facts_.size(); }
  [[nodiscard]] const std::vector<Ix>& facts() const { return facts_; }

  /// Whether it is proved; false is no knowledge.
  bool nonnegative(Ix p);
  bool zero(Ix p) { return p == constant(0) || (nonnegative(p) && nonnegative(negated(p))); }
  bool equal(Ix a, Ix b) { return a == b || zero(sub(a, b)); }
  /// Whether some numbers that all facts allow make them unequal.
  bool may_differ(Ix a, Ix b) {
    return refuted_by_samples(sub(a, b)) || refuted_by_samples(sub(b, a));
  }
  /// Whether what is taken for granted cannot be.
  bool contradictory() { return nonnegative(constant(-1)); }

  /// With something else for the index of a level.
  Ix substituted(Ix p, std::uint32_t level, Ix with);
  /// What the index of a level is divided by in it.
  void divisors(Ix p, std::uint32_t level, std::set<Ix>& out);
  /// a / b where that is a polynomial.
  std::optional<Ix> whole_quotient(Ix a, Ix b) { return exact(a, b); }
  [[nodiscard]] std::optional<std::int64_t> number(Ix p) const;
  /// A symbol, and what it is where p is 0: one that stands alone, in one term, with factor ±1.
  [[nodiscard]] std::optional<std::pair<std::string, Ix>> solve(Ix p);
  /// The symbols of a single term, each once; nothing where it is another thing.
  [[nodiscard]] std::optional<std::vector<std::string>> symbols_of(Ix p) const;
  /// The number before a single term.
  [[nodiscard]] std::int64_t factor_of(Ix p) const { return polynomials_[p.index].front().second; }
  /// factor * index of this level + rest; nothing where it is in a power, quotient or product.
  struct Line {
    Ix factor, rest;
  };
  [[nodiscard]] std::optional<Line> line(Ix p, std::uint32_t level);
  [[nodiscard]] bool mentions(Ix p, std::uint32_t level) const;
  /// The numbers of terms whose values are in it.
  void collect_values(Ix p, std::set<std::uint32_t>& out) const;
  /// Adds the levels of the indices that occur in it.
  void collect_levels(Ix p, std::set<std::uint32_t>& out) const;
  /// An atom that only a caller of `evaluate` can give a number to.
  struct Unknown {
    enum class Kind : std::uint8_t { symbol, variable, value } kind;
    std::string_view name;  ///< of a symbol
    std::uint32_t number;   ///< level of a variable, term of a value
    Ix extent;              ///< of a variable
    bool free;              ///< a symbol that may be less than 1
  };
  using Assign = std::function<std::optional<std::int64_t>(const Unknown&)>;
  /// Returns its number for the given numbers of unknowns; nothing without one of them or beyond 64
  /// bits.
  [[nodiscard]] std::optional<std::int64_t> evaluate(Ix p, const Assign& assign) const;
  [[nodiscard]] std::string print(Ix p) const;
  /// Divides both by the factors that all their terms share.
  std::pair<Ix, Ix> reduced(Ix a, Ix b);
  /// Whether a number grew beyond 64 bits: nothing is proved from then on.
  [[nodiscard]] bool overflowed() const { return overflowed_; }

 private:
  using AtomNumber = std::uint32_t;
  struct Atom {
    enum class Kind : std::uint8_t { symbol, variable, quotient, value } kind = Kind::symbol;
    std::string name;
    std::uint32_t number = 0;  ///< level or term
    Ix a, b;                   ///< extent; operands of a quotient
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
  bool mend(Ix fact, std::size_t n);
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
  std::unordered_map<Polynomial, Ix, PolynomialHash> ids_;  ///< never walked
  std::vector<Atom> atoms_;
  std::map<Atom, AtomNumber> atom_ids_;
  std::set<std::string, std::less<>> free_;
  std::vector<Ix> facts_;
  std::set<std::size_t> used_;
  std::map<Ix, bool> known_;
  std::map<std::pair<Ix, Ix>, Ix> quotients_;
  std::set<Ix> open_;  ///< being searched
  std::map<DimId, Ix> dims_;
  std::vector<std::map<AtomNumber, std::optional<std::int64_t>>> samples_;
  std::vector<bool> fits_;  ///< which samples meet the facts; empty: not asked yet
  std::size_t steps_ = 0;   ///< of a search
  bool overflowed_ = false;
};

}  // namespace pw::proof
