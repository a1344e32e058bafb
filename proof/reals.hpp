// Normal form of terms as fractions of polynomials. Floats are treated as reals without rounding,
// with laws for exp, maximum, comparisons, sums, and casts. With Laws::bits they are atoms without
// laws. Coefficients are exact rationals: a constant stands for the number that its 64 bits encode,
// whatever the dtype of its op.
//
// Programs round their constants: 1 / 1.4142135623730951 and 0.7071067811865476 differ in their
// last bits. Over the reals, constants that agree to 2^-40 are therefore identified. Integers of up
// to 63 bits are never identified with others of these, and with Laws::bits nothing is.
//
// Integers are machine integers in either mode. A k-bit integer is a polynomial over Z modulo 2^k,
// so sums, products, and narrowing casts reassociate and distribute. Everything else (order,
// division, absolute values, widening casts, casts to floats) is a function of the exact value.
// That value is the polynomial itself if its interval fits the dtype; otherwise it is an atom.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "algebra/interval.hpp"
#include "algebra/rational.hpp"
#include "proof/terms.hpp"

namespace pw::proof {

class Reals {
 public:
  enum class Laws : std::uint8_t { reals, bits };
  explicit Reals(Terms& terms, Laws laws = Laws::reals)
      : terms_(terms), integers_(terms.integers()), laws_(laws) {}
  /// Returns true if both are the same function wherever either is defined: over the reals, or bit
  /// for bit.
  bool equal(TermId a, TermId b);
  /// Returns true if the facts in scope require an integer outside its range, so that this case of
  /// indices never occurs.
  bool facts_contradict();
  /// Returns true if the last comparison gave up because its terms grew too large.
  [[nodiscard]] bool too_large() const { return too_large_; }

 private:
  using Factor = std::uint32_t;
  using FractionId = std::uint32_t;
  using Monomial = std::map<Factor, int>;
  using Polynomial = std::map<Monomial, Rational>;
  struct Fraction {
    Polynomial over, under;
    friend bool operator==(const Fraction&, const Fraction&) = default;
  };
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
  using Clauses = std::set<std::set<FractionId>>;  ///< the minimum of maxima, as a set of sets

  const Fraction& of(TermId term);
  Fraction made(TermId term);
  FractionId intern(const Fraction& fraction);
  Fraction atom(Atom atom);
  Fraction function(std::string name, const std::vector<FractionId>& args, bool boolean = false);
  Fraction function(Atom::Kind kind, const std::vector<FractionId>& args, bool boolean = false);
  Fraction index_at(Ix at);
  Fraction square_root(const Fraction& x);
  static Fraction number(const Rational& value);
  [[nodiscard]] bool agree(const Rational& a, const Rational& b) const;
  void add_term(Polynomial& sum, const Monomial& monomial, const Rational& factor);
  Polynomial plus(const Polynomial& a, const Polynomial& b, const Rational& times);
  Polynomial product(const Polynomial& a, const Polynomial& b);
  void merge_exponentials(Monomial& monomial);
  Fraction add(const Fraction& a, const Fraction& b, const Rational& times = 1);
  Fraction multiply(const Fraction& a, const Fraction& b);
  Fraction inverse(const Fraction& a);
  Fraction tidy(Fraction fraction);
  Fraction call(const Term& term);
  Fraction float_call(const Term& term);
  Fraction float_bits(const Term& term);
  Fraction truth(const Term& term);
  Fraction cast(const Term& term);
  /// Implemented in whole.cpp: integers and functions of their exact values.
  using Range = Interval<Rational>;
  static Range range_of(DType dtype);
  Range interval(const Polynomial& p);
  Range interval(const Fraction& f);
  int exact_bits(Factor factor);
  Fraction modulo(const Fraction& f, int bits);
  Fraction modulo(Factor factor, int bits);
  Fraction wrapped(const Fraction& exact, DType dtype);
  Fraction operand(TermId term, DType in);
  Fraction value(TermId term);
  Fraction value_made(TermId term);
  Fraction made_whole(const Term& term);
  Fraction whole_call(const Term& term);
  std::optional<Fraction> by_number(const Term& term);
  Fraction whole_cast(const Term& term);
  Fraction whole_division(const Term& term);
  Fraction whole_reduce(const Term& term);
  Fraction magnitude(const Term& term);
  Fraction with_range(Fraction atom, Range range);
  Fraction plain_whole(const Term& term, Range range);
  Fraction whole_truth(const Term& term);
  Fraction equals_whole(const Term& term);
  Fraction unsigned_zero(const std::string& name, const Fraction& difference);
  std::optional<Fraction> whole_number(TermId term);
  bool some_fact_contradicts();
  void spend(std::size_t steps);
  Fraction absolute(const Fraction& x);
  std::optional<Polynomial> square_of_absolute(Monomial& monomial);
  Fraction exponential(const Fraction& x);
  /// Returns the maximum or minimum. `whole`: both are integers, and the result stays one.
  Fraction extreme(bool greatest, const Fraction& a, const Fraction& b, bool whole = false);
  Clauses clauses_of(const Fraction& fraction);
  Fraction of_clauses(Clauses clauses, bool whole);
  [[nodiscard]] bool is_extreme(Factor factor) const;
  static Clauses either(const Clauses& a, const Clauses& b);
  Clauses dual(const Clauses& clauses);
  void absorb(Clauses& clauses);
  bool below(FractionId a, FractionId b);
  Fraction positive_sign(const Fraction& x, bool whole = false);
  Fraction is_zero(const Fraction& x);
  Fraction reduce(const Term& term);
  Fraction any_of(const Term& term);
  struct Index {
    std::uint32_t level;
    Ix extent;
  };
  using Indices = std::vector<Index>;
  Fraction whole_extreme(bool greatest, const Fraction& body, const Index& index);
  static constexpr FractionId kClause = 0xffffffffu;  ///< separates clauses in an atom's arguments
  static constexpr std::uint32_t kUnknownHeight = 0xffffffffu;
  [[noreturn]] static void throw_too_large();
  std::uint32_t height(Factor factor);
  std::uint32_t height(const Fraction& f);
  std::optional<Fraction> replaced(const Fraction& f, std::uint32_t level, Ix with);
  std::optional<Fraction> replaced(Factor factor, std::uint32_t level, Ix with);
  std::optional<Fraction> replaced_clauses(const Fraction& f, std::uint32_t level, Ix with);
  std::optional<Fraction> replaced_sum(const Atom& sum, std::uint32_t level, Ix with);
  std::optional<Fraction> opened(const Atom& sum, Indices& indices);
  Fraction bound(const std::string& name, const Fraction& body, std::uint32_t level, Ix extent);
  Fraction sum(const Fraction& body, std::uint32_t level, Ix extent);
  Fraction sum_over(Indices indices, const Fraction& body);
  Fraction sum_of_product(const Indices& indices, const Monomial& monomial);
  Fraction tied_sum(const Indices& indices, const Monomial& product);
  std::optional<Fraction> renumbered(const Indices& indices, const Monomial& product);
  void collect_divisors(Factor factor, std::uint32_t level, std::set<Ix>& out);
  static Fraction product_of(const Monomial& monomial);
  Fraction extent_of(Ix extent);
  bool depends(const Polynomial& p, std::uint32_t level);
  bool depends(const Fraction& f, std::uint32_t level) {
    return depends(f.over, level) || depends(f.under, level);
  }
  bool depends(Factor factor, std::uint32_t level);
  bool depends_at_all(Factor factor, std::uint32_t level);
  static std::optional<Rational> constant(const Fraction& fraction);
  static Rational lead(const Fraction& fraction);
  bool positive(const Polynomial& p);
  bool nonnegative(Factor factor);
  void collect_under(TermId term, std::set<FractionId>& out, std::set<TermId>& seen);
  bool agree_at_zeros(TermId a, TermId b, const std::set<FractionId>& zeros);

  Terms& terms_;
  Integers& integers_;
  Laws laws_;
  std::size_t steps_ = 0;
  bool too_large_ = false;
  std::vector<Fraction> fractions_;
  std::map<Fraction, FractionId, ByShape> fraction_ids_;
  std::vector<Atom> atoms_;
  std::map<Atom, Factor> atom_ids_;
  std::vector<std::uint32_t> heights_;  ///< by factor
  std::map<std::pair<Factor, std::uint32_t>, bool> depends_;
  std::uint32_t loose_ = 0;         ///< counter for fresh names
  std::map<Factor, Range> ranges_;  ///< intervals of integer atoms
  std::map<Factor, int> exact_bits_;
  std::map<TermId, Fraction> known_, values_;
  std::map<Factor, TermId> read_of_;  ///< terms that are single reads
};

}  // namespace pw::proof
