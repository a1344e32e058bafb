// Fractions of polynomials over atoms: the field in which terms are compared. Coefficients are
// exact rationals: a constant means the number that its 64 bits encode, whatever the dtype of
// its op.
//
// Programs round their constants: 1 / 1.4142135623730951 and 0.7071067811865476 differ in their
// last bits. Over the reals, constants that agree to 2^-40 are therefore identified. Integers of up
// to 63 bits are never identified with others of these, and with Laws::bits nothing is.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "algebra/rational.hpp"
#include "proof/terms.hpp"

namespace pw::proof {

enum class Laws : std::uint8_t {
  reals,  ///< floats are real numbers
  bits,   ///< operations on floats have no laws
};

/// Thrown where an expression exceeds a limit; caught by `Reals`.
struct TooLarge {};

using Factor = std::uint32_t;  ///< number of an atom
using FractionId = std::uint32_t;
/// A product of powers, a sum of products, and a quotient of sums. Powers may be negative only
/// while an exponential moves.
using Monomial = std::map<Factor, int>;
using Polynomial = std::map<Monomial, Rational>;
struct Fraction {
  Polynomial over, under;
  friend bool operator==(const Fraction&, const Fraction&) = default;
};

/// An element of an input, or a function of fractions.
struct Atom {
  /// The functions that have laws. All others differ by their names alone.
  enum class Kind : std::uint8_t {
    named,
    index,  ///< the integer at[0]
    exp,
    sqrt,
    abs,
    above,          ///< 1 if positive, otherwise 0
    zero,           ///< 1 if 0, otherwise 0
    any,            ///< 1 if a sum of booleans is positive
    sum,            ///< over the indices from `level` on
    clauses,        ///< the least of the greatest in each clause
    whole_clauses,  ///< the same of integers
    exact,          ///< the exact value of an integer of dtype `name`
  };
  std::string name;
  std::vector<FractionId> args;
  std::uint32_t level = 0;
  std::vector<Ix> at;
  bool boolean = false;
  Kind kind = Kind::named;
  friend auto operator<=>(const Atom&, const Atom&) = default;
};
inline constexpr FractionId kClause = 0xffffffffu;  ///< separates clauses in an atom's arguments

[[nodiscard]] Fraction number(const Rational& value);
[[nodiscard]] Fraction product_of(const Monomial& monomial);
[[nodiscard]] std::optional<Rational> constant(const Fraction& fraction);
/// Returns the coefficient by which a fraction is scaled to its normal form; 0 for 0.
[[nodiscard]] Rational lead(const Fraction& fraction);

class Field {
 public:
  Field(Integers& integers, Laws laws) : integers_(integers), laws_(laws) {}

  [[nodiscard]] Laws laws() const { return laws_; }
  [[nodiscard]] const Fraction& operator[](FractionId id) const { return fractions_[id]; }
  [[nodiscard]] const Atom& atom(Factor factor) const { return atoms_[factor]; }
  /// Returns the number of a fraction, which is that of one with agreeing coefficients if there is.
  FractionId intern(const Fraction& fraction);
  /// Returns the atom as a fraction; equal atoms share a factor.
  Fraction make(Atom atom);
  Fraction function(std::string name, const std::vector<FractionId>& args, bool boolean = false);
  Fraction function(Atom::Kind kind, const std::vector<FractionId>& args, bool boolean = false);
  /// An integer over sizes and indices, as a real number.
  Fraction index(Ix at);

  Polynomial plus(const Polynomial& a, const Polynomial& b, const Rational& times);
  Polynomial product(const Polynomial& a, const Polynomial& b);
  /// Returns a + b · times.
  Fraction add(const Fraction& a, const Fraction& b, const Rational& times = 1);
  Fraction multiply(const Fraction& a, const Fraction& b);
  Fraction inverse(const Fraction& a);
  /// Returns true if it is above 0 wherever it is defined.
  [[nodiscard]] bool positive(const Polynomial& p) const;

  /// Counts steps; throws TooLarge beyond the limit of one comparison.
  void spend(std::size_t steps);
  void restart() { steps_ = 0; }
  /// Returns true if constants were identified that are equal up to rounding only.
  [[nodiscard]] bool identified_constants() const { return identified_constants_; }

 private:
  /// Orders fractions by their monomials first, so that those of one shape are neighbours.
  struct ByShape {
    struct Shape {
      const Fraction& of;
    };
    using is_transparent = void;
    bool operator()(const Fraction& a, const Fraction& b) const;
    bool operator()(const Fraction& a, Shape b) const { return order_of_shapes(a, b.of) < 0; }
    bool operator()(Shape a, const Fraction& b) const { return order_of_shapes(a.of, b) < 0; }
    static std::strong_ordering order_of_shapes(const Fraction& a, const Fraction& b);
  };

  [[nodiscard]] bool agree(const Rational& a, const Rational& b);
  void add_term(Polynomial& sum, const Monomial& monomial, const Rational& factor);
  void merge_exponentials(Monomial& monomial);
  std::optional<Polynomial> square_of_absolute(Monomial& monomial);
  Fraction tidy(Fraction fraction);
  /// Returns true if the atom's value is at least 0 for all inputs.
  [[nodiscard]] bool nonnegative(Factor factor) const;

  Integers& integers_;
  Laws laws_;
  std::size_t steps_ = 0;
  bool identified_constants_ = false;
  std::deque<Fraction> fractions_;
  std::map<Fraction, FractionId, ByShape> fraction_ids_;
  std::deque<Atom> atoms_;
  std::map<Atom, Factor> atom_ids_;
};

}  // namespace pw::proof
