// Terms over the reals: fractions of polynomials in normal form, as if nothing were rounded, with
// the laws of exp, maximum, comparisons, sums and casts. Coefficients that agree to 12 digits are
// one, for a constant of a program is a rounded number itself.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proof/terms.hpp"

namespace pw::proof {

class Reals {
 public:
  explicit Reals(Terms& terms) : terms_(terms), integers_(terms.integers()) {}
  /// The same function of the reals, wherever one of the two is defined.
  bool equal(TermId a, TermId b);

 private:
  using Factor = std::uint32_t;
  using FractionId = std::uint32_t;
  using Monomial = std::map<Factor, int>;
  using Polynomial = std::map<Monomial, long double>;
  struct Fraction {
    Polynomial over, under;
  };
  /// An element of an input, or a function of fractions.
  struct Atom {
    std::string function;
    std::vector<FractionId> args;
    std::uint32_t level = 0;
    std::vector<Ix> at;
    bool boolean = false;
    friend auto operator<=>(const Atom&, const Atom&) = default;
  };
  using Clauses = std::set<std::set<FractionId>>;  ///< the least of the greatest of each

  const Fraction& of(TermId term);
  Fraction made(TermId term);
  FractionId intern(const Fraction& fraction);
  Fraction atom(Atom atom);
  Fraction function(std::string name, const std::vector<FractionId>& args, bool boolean = false);
  static Fraction number(long double value);
  static Polynomial plus(const Polynomial& a, const Polynomial& b, long double times);
  Polynomial product(const Polynomial& a, const Polynomial& b);
  void merge_exponentials(Monomial& monomial);
  Fraction add(const Fraction& a, const Fraction& b, long double times = 1);
  Fraction multiply(const Fraction& a, const Fraction& b);
  Fraction inverse(const Fraction& a);
  Fraction tidy(Fraction fraction);
  Fraction call(const Term& term);
  Fraction cast(const Term& term);
  bool whole_number(TermId term, DType in);
  Fraction absolute(const Fraction& x);
  std::optional<Polynomial> square_of_absolute(Monomial& monomial);
  Fraction exponential(const Fraction& x);
  Fraction extreme(bool greatest, const Fraction& a, const Fraction& b);
  Clauses clauses_of(const Fraction& fraction);
  Fraction of_clauses(Clauses clauses);
  static Clauses either(const Clauses& a, const Clauses& b);
  Clauses dual(const Clauses& clauses);
  void absorb(Clauses& clauses);
  bool below(FractionId a, FractionId b);
  Fraction positive_sign(const Fraction& x);
  Fraction is_zero(const Fraction& x);
  Fraction reduce(const Term& term);
  Fraction sum(const Fraction& body, std::uint32_t level, Ix extent);
  Fraction extent_of(Ix extent);
  bool depends(const Polynomial& p, std::uint32_t level);
  bool depends(const Fraction& f, std::uint32_t level) {
    return depends(f.over, level) || depends(f.under, level);
  }
  bool depends(Factor factor, std::uint32_t level);
  static std::optional<long double> constant(const Fraction& fraction);
  static long double lead(const Fraction& fraction);
  bool positive(const Polynomial& p);
  bool nonnegative(Factor factor);
  std::string key(const Polynomial& p) const;
  std::string key(const Fraction& f) const { return key(f.over) + " / " + key(f.under); }
  void collect_under(TermId term, std::set<std::string>& out, std::set<TermId>& seen);
  bool agree_at_zeros(TermId a, TermId b, const std::set<std::string>& zeros);

  Terms& terms_;
  Integers& integers_;
  std::vector<Fraction> fractions_;
  std::map<std::string, FractionId> fraction_ids_;
  std::vector<Atom> atoms_;
  std::map<Atom, Factor> atom_ids_;
  std::map<Factor, std::pair<long double, long double>> ranges_;  ///< of reads of few bits
  std::map<TermId, Fraction> known_;
  std::map<std::string, TermId> read_of_;  ///< by the key of a polynomial that is one read
};

/// A pointwise term in double precision for numbers of its inputs; missing ones are 1.
double evaluate(const Terms& terms, TermId term, const std::map<TermId, double>& inputs);

}  // namespace pw::proof
