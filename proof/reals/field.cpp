// Arithmetic of fractions of polynomials. Elementary laws hold in every product: exponentials merge
// by adding their exponents, and squares of booleans and absolute values reduce. Invariant:
// monomials have no zero powers, polynomials no zero coefficients, and the denominator's first
// coefficient is 1. Products of sums can grow exponentially, so the numbers of summands, of steps,
// and of bits are limited.
// Fractions are not reduced by polynomial divisors: (x² - 1) / (x - 1) and x + 1 have different
// forms. Reals::equal therefore compares cross products. Cancelling x in x y / x ignores x = 0;
// Reals::equal compares the zeros of denominators separately.
#include "proof/reals/field.hpp"

#include <algorithm>
#include <tuple>

namespace pw::proof {
namespace {

// Summands of one polynomial, or of the products of two. Beyond a limit TooLarge is thrown, and the
// comparison is unknown.
constexpr std::size_t kMostSummands = 4000;
constexpr std::size_t kMostRealSteps = 3000000;  // of one comparison
constexpr int kMostPower = 1 << 16;
constexpr std::size_t kMostCoefficientBits = 4096;

/// Returns true for an integer that counts something; a wider one is a rounded constant.
/// Counts such as 2 and 3 are exact, so they are never identified with neighbors.
bool is_count(const Rational& x) { return x.is_integer() && x.bits() <= 63; }

}  // namespace

/// The number 0 has an empty numerator, and every number has the denominator 1.
Fraction number(const Rational& value) {
  Fraction out;
  if (value != 0) out.over.emplace(Monomial(), value);
  out.under.emplace(Monomial(), 1);
  return out;
}

/// Nothing if the fraction contains an atom.
std::optional<Rational> constant(const Fraction& f) {
  if (f.over.empty()) return Rational(0);
  if (f.over.size() != 1 || !f.over.begin()->first.empty() || f.under.size() != 1 ||
      !f.under.begin()->first.empty())
    return std::nullopt;
  return f.over.begin()->second / f.under.begin()->second;
}

/// Dividing by it makes scalar multiples of one term equal, except for 0.
Rational lead(const Fraction& f) {
  return f.over.empty() ? Rational(0) : f.over.rbegin()->second / f.under.begin()->second;
}

Fraction product_of(const Monomial& monomial) {
  Fraction out;
  out.over.emplace(monomial, 1);
  out.under.emplace(Monomial(), 1);
  return out;
}

/// Coefficients are ignored, so fractions that differ by rounded constants are neighbors in the
/// map.
std::strong_ordering Field::ByShape::order_of_shapes(const Fraction& a, const Fraction& b) {
  for (const auto& [p, q] : {std::pair(&a.over, &b.over), std::pair(&a.under, &b.under)}) {
    if (p->size() != q->size()) return p->size() <=> q->size();
    for (auto x = p->begin(), y = q->begin(); x != p->end(); ++x, ++y)
      if (const auto order = x->first <=> y->first; order != 0) return order;
  }
  return std::strong_ordering::equal;
}

/// Within one shape, coefficients decide.
bool Field::ByShape::operator()(const Fraction& a, const Fraction& b) const {
  if (const auto order = order_of_shapes(a, b); order != 0) return order < 0;
  return std::tie(a.over, a.under) < std::tie(b.over, b.under);
}

void Field::spend(std::size_t steps) {
  if ((steps_ += steps) > kMostRealSteps) throw TooLarge{};
}

/// Returns true if two coefficients are the same or, over the reals, constants that are equal up
/// to rounding.
/// The relation is not transitive; the first fraction of a group represents it. Agreement is an
/// assumption, which verdicts list (kRoundedConstants).
bool Field::agree(const Rational& a, const Rational& b) {
  if (a == b) return true;
  if (laws_ == Laws::bits || (is_count(a) && is_count(b))) return false;
  static const Rational kRounding = Rational::of(kConstantRounding);
  if (abs(a - b) > kRounding * std::max(abs(a), abs(b))) return false;
  identified_constants_ = true;
  return true;
}

/// Coefficients that cancel up to rounding cancel completely: 0.7071067811865476 x - x /
/// 1.4142135623730951 is 0.
void Field::add_term(Polynomial& sum, const Monomial& monomial, const Rational& factor) {
  if (factor.bits() > kMostCoefficientBits) throw TooLarge{};
  const auto [found, fresh] = sum.emplace(monomial, factor);
  if (fresh) {
    if (factor == 0) sum.erase(found);
  } else if (agree(found->second, -factor)) {
    sum.erase(found);
  } else {
    found->second += factor;
  }
}

Polynomial Field::plus(const Polynomial& a, const Polynomial& b, const Rational& times) {
  spend(1 + a.size() + b.size());
  Polynomial out = a;
  for (const auto& [monomial, factor] : b) add_term(out, monomial, factor * times);
  if (out.size() > kMostSummands) throw TooLarge{};
  return out;
}

/// Multiplies monomials: exponentials merge into one, and 0/1-valued atoms are idempotent.
/// b² is b for b = 0 or 1. exp(x)^m exp(y)^n is exp(m x + n y), for negative powers too, since exp
/// is never 0.
void Field::merge_exponentials(Monomial& monomial) {
  std::vector<Factor> exponentials;
  for (auto& [factor, power] : monomial) {
    if (atoms_[factor].boolean) power = 1;
    if (atoms_[factor].kind == Atom::Kind::exp) exponentials.push_back(factor);
  }
  if (exponentials.empty() || (exponentials.size() == 1 && monomial[exponentials[0]] == 1)) return;
  Fraction exponent = number(0);
  for (Factor factor : exponentials) {
    exponent = add(exponent, fractions_[atoms_[factor].args[0]], monomial[factor]);
    monomial.erase(factor);
  }
  if (const auto value = constant(exponent); value && *value == 0) return;
  const Fraction made = function(Atom::Kind::exp, {intern(exponent)});
  monomial[made.over.begin()->first.begin()->first] += 1;
}

/// Cost is the product of both numbers of summands, before the laws of exp and abs.
Polynomial Field::product(const Polynomial& a, const Polynomial& b) {
  if (a.size() * b.size() > kMostSummands) throw TooLarge{};
  Polynomial out;
  for (const auto& [m, f] : a) {
    for (const auto& [n, g] : b) {
      spend(1 + m.size() + n.size());
      Monomial both = m;
      for (const auto& [factor, power] : n) {
        int& sum = both[factor];
        if (std::abs(sum += power) > kMostPower) throw TooLarge{};
        if (sum == 0) both.erase(factor);
      }
      merge_exponentials(both);
      if (const auto square = square_of_absolute(both)) {
        Polynomial rest;
        rest.emplace(both, f * g);
        out = plus(out, product(rest, *square), 1);
        continue;
      }
      add_term(out, both, f * g);
    }
  }
  return out;
}

/// Replaces |x|² by x² in a monomial.
/// Only for polynomials x: for a quotient the result would not be a polynomial.
std::optional<Polynomial> Field::square_of_absolute(Monomial& monomial) {
  for (auto it = monomial.begin(); it != monomial.end(); ++it) {
    const Atom& a = atoms_[it->first];
    if (a.kind != Atom::Kind::abs || it->second < 2) continue;
    const Fraction x = fractions_[a.args[0]];
    if (x.under != number(1).under) continue;
    if ((it->second -= 2) == 0) monomial.erase(it);
    return product(x.over, x.over);
  }
  return std::nullopt;
}

/// a / c + b / c keeps the denominator; otherwise both are expanded.
Fraction Field::add(const Fraction& a, const Fraction& b, const Rational& times) {
  if (a.under == b.under) return tidy({plus(a.over, b.over, times), a.under});
  return tidy(
      {plus(product(a.over, b.under), product(b.over, a.under), times), product(a.under, b.under)});
}

Fraction Field::multiply(const Fraction& a, const Fraction& b) {
  return tidy({product(a.over, b.over), product(a.under, b.under)});
}

/// The inverse of 0 has an empty denominator, which Reals::equal rejects.
Fraction Field::inverse(const Fraction& a) { return tidy({a.under, a.over}); }

/// Normalizes a fraction: cancels common powers, moves exponentials out of a one-term denominator,
/// and scales its first coefficient to 1.
/// Requires no zero powers or coefficients. Afterwards the leading coefficient of the denominator
/// is 1.
Fraction Field::tidy(Fraction f) {
  if (f.over.empty()) return number(0);
  if (f.under.empty()) return f;
  // The greatest monomial that divides every summand of both polynomials.
  Monomial shared = f.under.begin()->first;
  for (const Polynomial* p : {&f.over, &f.under}) {
    for (const auto& [monomial, factor] : *p) {
      for (auto it = shared.begin(); it != shared.end();) {
        const auto found = monomial.find(it->first);
        const int power = found == monomial.end() ? 0 : found->second;
        it->second = std::min(it->second, power);
        it = it->second <= 0 ? shared.erase(it) : std::next(it);
      }
    }
  }
  // An exponential is never 0, so in a one-term denominator it moves up with a negated exponent.
  if (f.under.size() == 1) {
    Monomial up;
    for (const auto& [factor, power] : f.under.begin()->first)
      if (atoms_[factor].kind == Atom::Kind::exp) up.emplace(factor, power);
    if (!up.empty()) {
      Polynomial raise;
      Monomial negative;
      for (const auto& [factor, power] : up) negative.emplace(factor, -power);
      merge_exponentials(negative);
      raise.emplace(negative, 1);
      f.over = product(f.over, raise);
      Monomial rest = f.under.begin()->first;
      for (const auto& [factor, power] : up) rest.erase(factor);
      f.under = {{rest, f.under.begin()->second}};
      for (const auto& [factor, power] : up) shared.erase(factor);
    }
  }
  const auto divide = [&](const Polynomial& p, const Rational& by) {
    Polynomial out;
    for (const auto& [before, factor] : p) {
      Monomial monomial = before;
      for (const auto& [shared_factor, power] : shared)
        if ((monomial[shared_factor] -= power) == 0) monomial.erase(shared_factor);
      out.emplace(std::move(monomial), factor / by);
    }
    return out;
  };
  const Rational first = f.under.begin()->second;
  f = {divide(f.over, first), divide(f.under, first)};
  // A multiple of the denominator is a number.
  if (f.over.size() == f.under.size() && f.under.size() > 1) {
    const Rational ratio = f.over.begin()->second / f.under.begin()->second;
    const bool multiple = std::equal(
        f.over.begin(), f.over.end(), f.under.begin(), [&](const auto& x, const auto& y) {
          return x.first == y.first && agree(x.second, ratio * y.second);
        });
    if (multiple) return number(ratio);
  }
  return f;
}

/// Over the reals, a fraction whose coefficients agree with those of an earlier one gets its id.
/// Atoms with such arguments are then equal: sqrt(x / 3) and sqrt(0.3333333333333333 x).
FractionId Field::intern(const Fraction& f) {
  spend(f.over.size() + f.under.size());
  const auto exact = fraction_ids_.find(f);
  if (exact != fraction_ids_.end()) return exact->second;
  const auto coefficients_agree = [&](const Polynomial& p, const Polynomial& q) {
    return std::equal(p.begin(), p.end(), q.begin(),
                      [&](const auto& x, const auto& y) { return agree(x.second, y.second); });
  };
  auto id = static_cast<FractionId>(fractions_.size());
  if (laws_ == Laws::reals) {
    const auto [begin, end] = fraction_ids_.equal_range(ByShape::Shape{f});
    for (auto other = begin; other != end; ++other) {
      const Fraction& first = fractions_[other->second];  // others that agree with it have its id
      if (!coefficients_agree(f.over, first.over) || !coefficients_agree(f.under, first.under))
        continue;
      id = other->second;
      break;
    }
  }
  fraction_ids_.emplace(f, id);
  if (id == fractions_.size()) fractions_.push_back(f);
  return id;
}

/// Hash-consing: equal atoms are one factor, so equality of functions is equality of their
/// arguments.
Fraction Field::make(Atom a) {
  const auto [found, fresh] = atom_ids_.emplace(a, static_cast<Factor>(atoms_.size()));
  if (fresh) atoms_.push_back(std::move(a));
  Fraction out;
  out.over.emplace(Monomial{{found->second, 1}}, 1);
  out.under.emplace(Monomial(), 1);
  return out;
}

Fraction Field::function(std::string name, const std::vector<FractionId>& args, bool boolean) {
  return make({std::move(name), args, 0, {}, boolean});
}

Fraction Field::function(Atom::Kind kind, const std::vector<FractionId>& args, bool boolean) {
  return make({"", args, 0, {}, boolean, kind});
}

Fraction Field::index(Ix at) { return make({"", {}, 0, {at}, false, Atom::Kind::index}); }

/// A size or an index depends on the facts in scope.
bool Field::nonnegative(Factor factor) const {
  const Atom& a = atoms_[factor];
  return a.boolean || a.kind == Atom::Kind::exp || a.kind == Atom::Kind::sqrt ||
         a.kind == Atom::Kind::abs ||
         (a.kind == Atom::Kind::index && integers_.nonnegative(a.at[0]));
}

/// A sum of nonnegative monomials with positive coefficients is positive if one of them is never 0.
/// Even powers are nonnegative for every factor. Example: 1 + exp(x) and x² + 1, but not x² or x +
/// 1.
bool Field::positive(const Polynomial& p) const {
  const auto is_never_zero = [&](Factor f) {
    const Atom& a = atoms_[f];
    if (a.kind == Atom::Kind::index)
      return integers_.nonnegative(integers_.sub(a.at[0], integers_.constant(1)));
    return a.kind == Atom::Kind::exp ||
           (a.kind == Atom::Kind::sqrt && positive(fractions_[a.args.front()].over));
  };
  bool strict = false;
  for (const auto& [monomial, factor] : p) {
    bool never_zero = true;
    for (const auto& [f, power] : monomial) {
      if (power % 2 != 0 && !nonnegative(f)) return false;
      never_zero = never_zero && is_never_zero(f);
    }
    if (factor < 0) return false;
    strict = strict || never_zero;
  }
  return strict;
}

}  // namespace pw::proof
