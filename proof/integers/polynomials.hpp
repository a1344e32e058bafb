// Polynomials over size symbols, bounded indices, floor quotients, and integers read from tensors,
// without facts about these.
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

namespace pw::proof {

using Ix = Id<struct IxTag>;

class IntegerPolynomials {
 public:
  Ix constant(std::int64_t value);
  Ix symbol(std::string_view name);
  /// Returns the index 0 … extent − 1 of a level. Two of one level and extent are identical.
  Ix variable(std::uint32_t level, Ix extent);
  /// Returns the integer that a tensor holds, by the number of its term; it has no bounds.
  Ix value(std::uint32_t term);
  Ix add(Ix a, Ix b);
  Ix sub(Ix a, Ix b);
  Ix mul(Ix a, Ix b);
  Ix negated(Ix p) { return sub(constant(0), p); }
  /// Declares a symbol that may be less than 1.
  void free(std::string_view symbol) { free_.emplace(symbol); }
  [[nodiscard]] bool is_free(std::string_view symbol) const { return free_.contains(symbol); }

  /// Returns a / b if it is a polynomial.
  std::optional<Ix> whole_quotient(Ix a, Ix b);
  /// Divides polynomials: a = quotient * b + rest.
  std::pair<Ix, Ix> split(Ix a, Ix b);
  /// Divides both by the factors common to all their terms.
  std::pair<Ix, Ix> reduced(Ix a, Ix b);
  [[nodiscard]] std::optional<std::int64_t> number(Ix p) const;
  /// Solves p = 0 for a symbol that occurs in one linear term with coefficient ±1. Returns the
  /// symbol and its solution.
  [[nodiscard]] std::optional<std::pair<std::string, Ix>> solve(Ix p);
  /// Returns the distinct symbols of a single term; nothing if p has another form.
  [[nodiscard]] std::optional<std::vector<std::string>> symbols_of(Ix p) const;
  /// Returns the coefficient of a single-term polynomial.
  [[nodiscard]] std::int64_t factor_of(Ix p) const { return polynomial(p).front().second; }
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
  /// Returns true if a coefficient exceeded 64 bits; nothing is proved after that.
  [[nodiscard]] bool overflowed() const { return overflowed_; }

  // ---- representation
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
  /// References stay valid until the next polynomial or atom is made.
  [[nodiscard]] const Polynomial& polynomial(Ix p) const { return polynomials_[p.index]; }
  [[nodiscard]] const Atom& atom(AtomNumber number) const { return atoms_[number]; }
  Ix of_atom(Atom atom);
  Ix of_monomial(const Monomial& monomial, std::int64_t factor);
  /// Adds the atoms of p, and those of its quotients' operands.
  void mention(Ix p, std::set<AtomNumber>& out) const;

 private:
  Ix intern(std::map<Monomial, std::int64_t> terms);

  std::vector<Polynomial> polynomials_;
  struct PolynomialHash {
    std::size_t operator()(const Polynomial& p) const;
  };
  std::unordered_map<Polynomial, Ix, PolynomialHash> ids_;  ///< never iterated
  std::vector<Atom> atoms_;
  std::map<Atom, AtomNumber> atom_ids_;
  std::set<std::string, std::less<>> free_;
  bool overflowed_ = false;
};

/// Expressions that are at least 0.
struct IntegerFacts {
  std::vector<Ix> list;
  std::set<std::size_t> used;  ///< numbers of the facts that proofs used
};

}  // namespace pw::proof
