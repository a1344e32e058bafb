// Decides equality of terms over the reals by normalization to fractions of polynomials over atoms.
// Two fractions are equal if the difference of their cross products vanishes, up to rounding of
// constants. Elementary laws extend this: exponentials merge by adding exponents, squares
// of booleans and absolute values reduce, and extrema form a distributive lattice in normal form
// (the least of greatest clauses). Comparisons are functions of the sign of a difference.
// Denominators that occur on one side only are checked at their zeros. Invariant: true implies the
// same function wherever either side is defined. Products of sums can grow exponentially, so a
// limit on terms ends the comparison with too_large.
#include "proof/reals.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "proof/machine.hpp"

namespace pw::proof {
namespace {

constexpr std::size_t kMostSummands = 4000;
constexpr std::size_t kMostClauses = 64;
constexpr std::size_t kMostRealSteps = 3000000;  // of one comparison
constexpr int kMostPower = 1 << 16;
constexpr std::size_t kMostCoefficientBits = 4096;  // of a coefficient

struct TooLarge {};

/// Returns true for an integer that counts something; a wider one is a rounded constant.
bool is_count(const Rational& x) { return x.is_integer() && x.bits() <= 63; }

}  // namespace

void Reals::throw_too_large() { throw TooLarge{}; }

void Reals::spend(std::size_t steps) {
  if ((steps_ += steps) > kMostRealSteps) throw TooLarge{};
}

// ---- polynomials

Reals::Fraction Reals::number(const Rational& value) {
  Fraction out;
  if (value != 0) out.over.emplace(Monomial(), value);
  out.under.emplace(Monomial(), 1);
  return out;
}

/// Returns true if two coefficients are the same or, over the reals, constants that are equal up
/// to rounding.
bool Reals::agree(const Rational& a, const Rational& b) const {
  if (a == b) return true;
  if (laws_ == Laws::bits || (is_count(a) && is_count(b))) return false;
  static const Rational kRounding = Rational::of(0x1p-40);
  return abs(a - b) <= kRounding * std::max(abs(a), abs(b));
}

void Reals::add_term(Polynomial& sum, const Monomial& monomial, const Rational& factor) {
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

Reals::Polynomial Reals::plus(const Polynomial& a, const Polynomial& b, const Rational& times) {
  spend(1 + a.size() + b.size());
  Polynomial out = a;
  for (const auto& [monomial, factor] : b) add_term(out, monomial, factor * times);
  if (out.size() > kMostSummands) throw TooLarge{};
  return out;
}

/// Multiplies monomials: exponentials merge into one, and 0/1-valued atoms are idempotent.
void Reals::merge_exponentials(Monomial& monomial) {
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

Reals::Polynomial Reals::product(const Polynomial& a, const Polynomial& b) {
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
std::optional<Reals::Polynomial> Reals::square_of_absolute(Monomial& monomial) {
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

Reals::Fraction Reals::add(const Fraction& a, const Fraction& b, const Rational& times) {
  if (a.under == b.under) return tidy({plus(a.over, b.over, times), a.under});
  return tidy(
      {plus(product(a.over, b.under), product(b.over, a.under), times), product(a.under, b.under)});
}

Reals::Fraction Reals::multiply(const Fraction& a, const Fraction& b) {
  return tidy({product(a.over, b.over), product(a.under, b.under)});
}

Reals::Fraction Reals::inverse(const Fraction& a) { return tidy({a.under, a.over}); }

/// Normalizes a fraction: cancels common powers, moves exponentials out of a one-term denominator,
/// and scales its first coefficient to 1.
Reals::Fraction Reals::tidy(Fraction f) {
  if (f.over.empty()) return number(0);
  if (f.under.empty()) return f;
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

std::optional<Rational> Reals::constant(const Fraction& f) {
  if (f.over.empty()) return Rational(0);
  if (f.over.size() != 1 || !f.over.begin()->first.empty() || f.under.size() != 1 ||
      !f.under.begin()->first.empty())
    return std::nullopt;
  return f.over.begin()->second / f.under.begin()->second;
}

Rational Reals::lead(const Fraction& f) {
  return f.over.empty() ? Rational(0) : f.over.rbegin()->second / f.under.begin()->second;
}

std::strong_ordering Reals::ByShape::order_of_shapes(const Fraction& a, const Fraction& b) {
  for (const auto& [p, q] : {std::pair(&a.over, &b.over), std::pair(&a.under, &b.under)}) {
    if (p->size() != q->size()) return p->size() <=> q->size();
    for (auto x = p->begin(), y = q->begin(); x != p->end(); ++x, ++y)
      if (const auto order = x->first <=> y->first; order != 0) return order;
  }
  return std::strong_ordering::equal;
}

bool Reals::ByShape::operator()(const Fraction& a, const Fraction& b) const {
  if (const auto order = order_of_shapes(a, b); order != 0) return order < 0;
  return std::tie(a.over, a.under) < std::tie(b.over, b.under);
}

/// Returns the number of a fraction, which is that of one with agreeing coefficients if there is.
Reals::FractionId Reals::intern(const Fraction& f) {
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

Reals::Fraction Reals::atom(Atom a) {
  const auto [found, fresh] = atom_ids_.emplace(a, static_cast<Factor>(atoms_.size()));
  if (fresh) atoms_.push_back(std::move(a));
  Fraction out;
  out.over.emplace(Monomial{{found->second, 1}}, 1);
  out.under.emplace(Monomial(), 1);
  return out;
}

Reals::Fraction Reals::function(std::string name, const std::vector<FractionId>& args,
                                bool boolean) {
  return atom({std::move(name), args, 0, {}, boolean});
}

Reals::Fraction Reals::function(Atom::Kind kind, const std::vector<FractionId>& args,
                                bool boolean) {
  return atom({"", args, 0, {}, boolean, kind});
}

Reals::Fraction Reals::index_at(Ix at) { return atom({"", {}, 0, {at}, false, Atom::Kind::index}); }

bool Reals::nonnegative(Factor factor) {
  const Atom& a = atoms_[factor];
  return a.boolean || a.kind == Atom::Kind::exp || a.kind == Atom::Kind::sqrt ||
         a.kind == Atom::Kind::abs;
}

/// Returns true if it is above 0 wherever it is defined.
bool Reals::positive(const Polynomial& p) {
  const auto is_never_zero = [&](Factor f) {
    const Atom& a = atoms_[f];
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

// ---- terms

const Reals::Fraction& Reals::of(TermId term) {
  const auto found = known_.find(term);
  if (found != known_.end()) return found->second;
  Fraction out = made(term);
  return known_.emplace(term, std::move(out)).first->second;
}

Reals::Fraction Reals::made(TermId id) {
  const Term term = terms_[id];
  spend(1);
  if (is_integer(term.dtype)) return made_whole(term);
  switch (term.kind) {
    case Term::Kind::number:
      if (term.dtype == DType::b8) return number(term.number != 0 ? 1 : 0);
      if (laws_ == Laws::bits)
        return atom({fmt::format("{} {:a}", name(term.dtype), term.number), {}, 0, {}, false});
      if (!std::isfinite(term.number))
        return atom({fmt::format("number {}", term.number), {}, 0, {}, false});
      return number(Rational::of(term.number));
    case Term::Kind::read: {
      Fraction out = atom({"read " + term.name, {}, 0, term.at, term.dtype == DType::b8});
      if (term.dtype == DType::b8) out = with_range(std::move(out), {0, 1});
      read_of_.emplace(out.over.begin()->first.begin()->first, id);
      return out;
    }
    case Term::Kind::index: return extent_of(term.at[0]);
    case Term::Kind::call: return call(term);
    case Term::Kind::reduce: return reduce(term);
    case Term::Kind::lambda: {
      return atom({"lambda", {intern(value(term.args[0]))}, term.level, term.at, false});
    }
    case Term::Kind::opaque: {
      Atom a{"opaque " + term.name, {}, term.level, term.at, term.dtype == DType::b8};
      for (TermId arg : term.args) a.args.push_back(intern(of(arg)));
      return atom(std::move(a));
    }
  }
  return number(0);
}

/// Converts a product of sizes to a product of atoms, so that a sum over it equals nested sums over
/// its factors.
Reals::Fraction Reals::extent_of(Ix extent) {
  if (const auto value = integers_.number(extent)) return number(*value);
  const auto sizes = integers_.symbols_of(extent);
  if (!sizes || (sizes->size() == 1 && integers_.factor_of(extent) == 1)) return index_at(extent);
  Fraction out = number(integers_.factor_of(extent));
  for (const std::string& size : *sizes) out = multiply(out, index_at(integers_.symbol(size)));
  return out;
}

/// Returns |x|, whose square equals that of x.
Reals::Fraction Reals::absolute(const Fraction& x) {
  if (const auto value = constant(x)) return number(pw::abs(*value));
  const Rational scale = lead(x);
  return multiply(number(pw::abs(scale)),
                  function(Atom::Kind::abs, {intern(multiply(number(1 / scale), x))}));
}

Reals::Fraction Reals::square_root(const Fraction& x) {
  return function(Atom::Kind::sqrt, {intern(x)});
}

Reals::Fraction Reals::exponential(const Fraction& x) {
  if (const auto value = constant(x); value && *value == 0) return number(1);
  return function(Atom::Kind::exp, {intern(x)});
}

Reals::Fraction Reals::call(const Term& term) {
  if (term.dtype == DType::b8) return truth(term);
  return laws_ == Laws::bits ? float_bits(term) : float_call(term);
}

/// Returns an atom for a float operation without laws.
Reals::Fraction Reals::float_bits(const Term& term) {
  std::vector<FractionId> args;
  std::string of_dtypes;
  for (TermId arg : term.args) {
    args.push_back(intern(value(arg)));
    of_dtypes += " " + std::string(is_integer(terms_[arg].dtype) ? "int" : name(terms_[arg].dtype));
  }
  if (among(term.function, {Function::add, Function::mul}) && args.size() == 2 &&
      args[1] < args[0] && terms_[term.args[0]].dtype == terms_[term.args[1]].dtype)
    std::swap(args[0], args[1]);
  return function(fmt::format("{} {} of{}", name(term.function), name(term.dtype), of_dtypes), args,
                  term.dtype == DType::b8);
}

Reals::Fraction Reals::float_call(const Term& term) {
  std::vector<Fraction> x;
  for (TermId arg : term.args) x.push_back(value(arg));
  const Function op = term.function;
  const Fraction one = number(1);
  const auto plain = [&] {
    std::vector<FractionId> args;
    for (const Fraction& f : x) args.push_back(intern(f));
    return function(std::string(name(op)), args);
  };
  if (op == Function::cast) return cast(term);
  if (among(op, {Function::add, Function::addmm, Function::join_sum})) return add(x[0], x[1]);
  if (op == Function::sub) return add(x[0], x[1], -1);
  if (op == Function::neg) return multiply(number(-1), x[0]);
  if (among(op, {Function::mul, Function::join_product})) return multiply(x[0], x[1]);
  if (op == Function::div) return x[1].over.empty() ? plain() : multiply(x[0], inverse(x[1]));
  if (op == Function::select) return add(multiply(x[0], x[1]), multiply(add(one, x[0], -1), x[2]));
  if (among(op, {Function::maximum, Function::minimum}))
    return extreme(op == Function::maximum, x[0], x[1]);
  if (op == Function::abs) return absolute(x[0]);
  if (op == Function::exp) return exponential(x[0]);
  if (op == Function::expm1) return add(exponential(x[0]), one, -1);
  if (op == Function::log1p) return function("log", {intern(add(x[0], one))});
  if (op == Function::tanh) {  // 2 / (1 + exp(-2 x)) - 1
    const Fraction e = exponential(multiply(number(-2), x[0]));
    return add(multiply(number(2), inverse(add(one, e))), one, -1);
  }
  if (op == Function::sqrt) return square_root(x[0]);
  if (op == Function::rsqrt) return inverse(square_root(x[0]));
  if (op == Function::remainder) {  // of what is a period more or less
    for (const int sign : {1, -1})
      for (Fraction less = add(x[0], x[1], -sign);
           x[1].over.size() == 1 && less.over.size() < x[0].over.size();
           less = add(x[0], x[1], -sign))
        x[0] = less;
    return plain();
  }
  if (op == Function::pow) {
    const auto power = constant(x[1]);
    if (power && *power >= 0 && *power <= 8 && power->is_integer()) {
      Fraction out = one;
      for (int i = 0; i < *power; ++i) out = multiply(out, x[0]);
      return out;
    }
  }
  return plain();
}

/// Converts a boolean to 0 or 1.
Reals::Fraction Reals::truth(const Term& term) {
  const Function op = term.function;
  const Fraction one = number(1);
  const auto is_b8 = [&](std::size_t i) { return terms_[term.args[i]].dtype == DType::b8; };
  if (op == Function::select && is_b8(1) && is_b8(2)) {
    const Fraction mask = value(term.args[0]);
    const Fraction taken = is_b8(0) ? mask : add(one, is_zero(mask), -1);
    return add(multiply(taken, of(term.args[1])), multiply(add(one, taken, -1), of(term.args[2])));
  }
  const bool all_b8 = std::all_of(term.args.begin(), term.args.end(),
                                  [&](TermId arg) { return terms_[arg].dtype == DType::b8; });
  if (all_b8) {
    const Fraction x = of(term.args[0]);
    if (op == Function::bitwise_not) return add(one, x, -1);
    if (term.args.size() == 2) {
      const Fraction y = of(term.args[1]), both = multiply(x, y);
      if (among(op, {Function::bitwise_and, Function::mul, Function::minimum})) return both;
      if (among(op, {Function::bitwise_or, Function::maximum, Function::add}))
        return add(add(x, y), both, -1);
      if (among(op, {Function::bitwise_xor, Function::ne})) return add(add(x, y), both, -2);
      if (op == Function::eq) return add(one, add(add(x, y), both, -2), -1);
      if (op == Function::lt) return add(y, both, -1);
      if (op == Function::le) return add(one, add(x, both, -1), -1);
    }
  }
  const bool all_whole = std::none_of(term.args.begin(), term.args.end(),
                                      [&](TermId arg) { return is_float(terms_[arg].dtype); });
  if (all_whole) return whole_truth(term);
  if (laws_ == Laws::bits) return float_bits(term);
  std::vector<Fraction> x;
  for (TermId arg : term.args) x.push_back(value(arg));
  if (op == Function::lt) return positive_sign(add(x[1], x[0], -1));
  if (op == Function::le) return add(one, positive_sign(add(x[0], x[1], -1)), -1);
  if (op == Function::eq) return is_zero(add(x[0], x[1], -1));
  if (op == Function::ne) return add(one, is_zero(add(x[0], x[1], -1)), -1);
  if (op == Function::cast) return add(one, is_zero(x[0]), -1);
  std::vector<FractionId> args;
  for (const Fraction& f : x) args.push_back(intern(f));
  return function(fmt::format("{} b8", name(op)), args, true);
}

/// Converts a cast to a float.
Reals::Fraction Reals::cast(const Term& term) {
  const DType to = term.dtype, from = terms_[term.args[0]].dtype;
  const Fraction x = value(term.args[0]);
  if (const double most = saturation(to); most > 0 && from != to) {
    const bool whole = is_integer(from);
    const Rational limit = Rational::of(most);
    return extreme(false, extreme(true, x, number(-limit), whole), number(limit), whole);
  }
  return x;
}

// ---- order

bool Reals::is_extreme(Factor factor) const {
  const Atom::Kind kind = atoms_[factor].kind;
  return kind == Atom::Kind::clauses || kind == Atom::Kind::whole_clauses;
}

Reals::Clauses Reals::clauses_of(const Fraction& f) {
  // A single atom of clauses.
  if (f.over.size() == 1 && f.under.size() == 1 && f.under.begin()->first.empty()) {
    const auto& [monomial, factor] = *f.over.begin();
    if (monomial.size() == 1 && monomial.begin()->second == 1 &&
        is_extreme(monomial.begin()->first)) {
      const Rational scale = factor / f.under.begin()->second;
      const std::vector<FractionId> args = atoms_[monomial.begin()->first].args;
      Clauses out;
      std::set<FractionId> clause;
      for (FractionId arg : args) {
        if (arg == kClause) {
          out.insert(clause);
          clause.clear();
        } else {
          clause.insert(intern(multiply(number(scale), Fraction(fractions_[arg]))));
        }
      }
      return scale > 0 ? out : dual(out);
    }
  }
  return {{intern(f)}};
}

/// Converts a maximum of minima to a minimum of maxima.
Reals::Clauses Reals::dual(const Clauses& clauses) {
  Clauses out = {{}};
  for (const auto& clause : clauses) {
    Clauses next;
    for (const auto& part : out) {
      for (FractionId literal : clause) {
        auto more = part;
        more.insert(literal);
        next.insert(std::move(more));
      }
    }
    if (next.size() > kMostClauses) throw TooLarge{};
    out = std::move(next);
  }
  return out;
}

Reals::Clauses Reals::either(const Clauses& a, const Clauses& b) {
  Clauses out;
  for (const auto& x : a) {
    for (const auto& y : b) {
      auto both = x;
      both.insert(y.begin(), y.end());
      out.insert(std::move(both));
    }
  }
  if (out.size() > kMostClauses) throw TooLarge{};
  return out;
}

bool Reals::below(FractionId a, FractionId b) {
  if (a == b) return true;
  const Fraction x = fractions_[a], y = fractions_[b];
  const auto difference = constant(add(y, x, -1));
  if (difference) return *difference >= 0;
  return interval(add(y, x, -1)).at_least(0);
}

void Reals::absorb(Clauses& clauses) {
  Clauses shorter;
  for (const auto& clause : clauses) {
    std::set<FractionId> kept;
    for (FractionId literal : clause) {
      const bool covered = std::any_of(clause.begin(), clause.end(), [&](FractionId other) {
        return other != literal && below(literal, other);
      });
      if (!covered) kept.insert(literal);
    }
    shorter.insert(kept.empty() ? clause : kept);
  }
  clauses.clear();
  for (const auto& clause : shorter) {
    const bool implied = std::any_of(shorter.begin(), shorter.end(), [&](const auto& other) {
      if (other == clause) return false;
      return std::all_of(other.begin(), other.end(), [&](FractionId x) {
        return std::any_of(clause.begin(), clause.end(), [&](FractionId y) { return below(x, y); });
      });
    });
    if (!implied) clauses.insert(clause);
  }
}

Reals::Fraction Reals::extreme(bool greatest, const Fraction& a, const Fraction& b, bool whole) {
  const Clauses x = clauses_of(a), y = clauses_of(b);
  Clauses both;
  if (greatest) {
    both = either(x, y);
  } else {
    both = x;
    both.insert(y.begin(), y.end());
  }
  absorb(both);
  return of_clauses(std::move(both), whole);
}

/// Scales an extremum so that its first nonconstant literal has coefficient 1; integers are not
/// scaled.
Reals::Fraction Reals::of_clauses(Clauses clauses, bool whole) {
  if (clauses.size() == 1 && clauses.begin()->size() == 1)
    return fractions_[*clauses.begin()->begin()];
  if (whole) {
    std::vector<FractionId> args;
    std::optional<Range> least;
    for (const auto& clause : clauses) {
      std::optional<Range> greatest;
      for (FractionId literal : clause) {
        const Range of = interval(Fraction(fractions_[literal]));
        greatest = greatest ? greater(*greatest, of) : of;
      }
      least = least ? lesser(*least, *greatest) : greatest;
      args.insert(args.end(), clause.begin(), clause.end());
      args.push_back(kClause);
    }
    return with_range(function(Atom::Kind::whole_clauses, args), *least);
  }
  std::optional<FractionId> least;
  Rational scale = 1;
  for (const auto& clause : clauses) {
    for (FractionId literal : clause) {
      const Fraction f = fractions_[literal];
      if (constant(f)) continue;
      const FractionId shape = intern(multiply(number(1 / lead(f)), f));
      if (least && (shape > *least || (shape == *least && lead(f) <= scale))) continue;
      least = shape;
      scale = lead(f);
    }
  }
  const auto scaled = [&](const Clauses& of, const Rational& by) {
    Clauses out;
    for (const auto& clause : of) {
      std::set<FractionId> literals;
      for (FractionId literal : clause)
        literals.insert(intern(multiply(number(by), Fraction(fractions_[literal]))));
      out.insert(std::move(literals));
    }
    return out;
  };
  Clauses normal = scaled(clauses, 1 / scale);
  if (scale < 0) {
    normal = dual(normal);
    absorb(normal);
  }
  std::vector<FractionId> args;
  for (const auto& clause : normal) {
    args.insert(args.end(), clause.begin(), clause.end());
    args.push_back(kClause);
  }
  return multiply(number(scale), function(Atom::Kind::clauses, args));
}

/// Returns 1 if x > 0, otherwise 0.
Reals::Fraction Reals::positive_sign(const Fraction& x, bool whole) {
  spend(1);
  if (const auto value = constant(x)) return number(*value > 0 ? 1 : 0);
  if (whole) {
    const Range range = interval(x);
    if (range.above(0)) return number(1);
    if (range.at_most(0)) return number(0);
  }
  // For an extreme plus other terms, adds these to each literal.
  if (x.under.size() == 1 && x.under.begin()->first.empty()) {
    for (const auto& [monomial, factor] : x.over) {
      if (monomial.size() != 1 || monomial.begin()->second != 1 ||
          !is_extreme(monomial.begin()->first))
        continue;
      Fraction extreme, rest = x;
      extreme.over.emplace(monomial, factor);
      extreme.under = x.under;
      rest.over.erase(monomial);
      if (rest.over.empty()) rest = number(0);
      Fraction all = number(1);
      for (const auto& clause : clauses_of(extreme)) {
        Fraction none = number(1);
        for (FractionId literal : clause) {
          const Fraction holds = positive_sign(add(Fraction(fractions_[literal]), rest), whole);
          none = multiply(none, add(number(1), holds, -1));
        }
        all = multiply(all, add(number(1), none, -1));
      }
      return all;
    }
  }
  if (x.under.size() == 1 && x.under.begin()->first.empty() && positive(x.over)) return number(1);
  if (whole) return function("whole above", {intern(x)}, true);
  const Rational scale = pw::abs(lead(x));
  return function(Atom::Kind::above, {intern(multiply(number(1 / scale), x))}, true);
}

Reals::Fraction Reals::is_zero(const Fraction& x) {
  if (const auto value = constant(x)) return number(*value == 0 ? 1 : 0);
  if (x.over.size() == 1 && x.over.begin()->first.size() == 1 &&
      atoms_[x.over.begin()->first.begin()->first].boolean && lead(x) == 1)
    return add(number(1), x, -1);
  return function(Atom::Kind::zero, {intern(multiply(number(1 / lead(x)), x))}, true);
}

// ---- reductions

bool Reals::depends(Factor factor, std::uint32_t level) {
  const auto known = depends_.find({factor, level});
  if (known != depends_.end()) return known->second;
  const bool out = depends_at_all(factor, level);
  depends_.emplace(std::pair(factor, level), out);
  return out;
}

bool Reals::depends_at_all(Factor factor, std::uint32_t level) {
  const Atom a = atoms_[factor];
  if (std::any_of(a.at.begin(), a.at.end(), [&](Ix ix) { return integers_.mentions(ix, level); }))
    return true;
  for (Ix ix : a.at) {  // an index may be read from a tensor
    std::set<std::uint32_t> values;
    integers_.collect_values(ix, values);
    for (std::uint32_t value : values)
      if (depends(of(TermId(std::size_t{value})), level)) return true;
  }
  return std::any_of(a.args.begin(), a.args.end(), [&](FractionId arg) {
    return arg != kClause && depends(Fraction(fractions_[arg]), level);
  });
}

bool Reals::depends(const Polynomial& p, std::uint32_t level) {
  for (const auto& [monomial, factor] : p)
    for (const auto& [f, power] : monomial)
      if (depends(f, level)) return true;
  return false;
}

// ---- equality

/// The factors of denominators that may be 0.
void Reals::collect_under(TermId id, std::set<FractionId>& out, std::set<TermId>& seen) {
  if (!seen.insert(id).second) return;
  const Term term = terms_[id];
  for (TermId arg : term.args) collect_under(arg, out, seen);
  if (term.kind != Term::Kind::call || !is_float(term.dtype)) return;
  const bool inverse_root = term.function == Function::rsqrt;
  if (term.function != Function::div && !inverse_root) return;
  const Fraction argument = value(term.args[inverse_root ? 0 : 1]);
  const Fraction by = inverse_root ? square_root(argument) : argument;
  if (positive(by.over)) return;
  if (by.over.size() == 1) {
    for (const auto& [f, power] : by.over.begin()->first) {
      Polynomial alone;
      alone.emplace(Monomial{{f, 1}}, 1);
      if (!positive(alone)) out.insert(intern({alone, number(1).over}));
    }
    if (by.over.begin()->first.empty()) return;
    return;
  }
  Fraction normal;
  normal.over = by.over;
  normal.under = number(1).over;
  out.insert(intern(multiply(number(1 / lead(normal)), normal)));
}

/// If only one side divides by an input, both must agree where it is 0.
bool Reals::agree_at_zeros(TermId a, TermId b, const std::set<FractionId>& zeros) {
  if (!terms_.pointwise(a) || !terms_.pointwise(b)) return false;
  std::vector<TermId> inputs;
  for (std::size_t i = 0; i < terms_.size(); ++i)
    if (terms_[TermId(i)].kind == Term::Kind::read) inputs.push_back(TermId(i));
  for (FractionId zero : zeros) {
    const Polynomial& by = fractions_[zero].over;
    const bool single = by.size() == 1 && by.begin()->first.size() == 1;
    const auto read = single ? read_of_.find(by.begin()->first.begin()->first) : read_of_.end();
    if (read == read_of_.end()) return false;
    for (int sample = 0; sample < 8; ++sample) {
      std::map<TermId, Scalar> values;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        values[inputs[i]] = Scalar::of(terms_[inputs[i]].dtype,
                                       ((sample >> (i % 3)) & 1 ? -1 : 1) *
                                           (1.25 + 0.37 * static_cast<double>(i) + 0.11 * sample));
      values[read->second] = Scalar::of(terms_[read->second].dtype, 0);
      const auto x = evaluate(terms_, a, values), y = evaluate(terms_, b, values);
      if (!x || !y || !alike(*x, *y)) return false;
    }
  }
  return true;
}

bool Reals::facts_contradict() {
  steps_ = 0;
  try {
    return some_fact_contradicts();
  } catch (const TooLarge&) {
    return false;
  }
}

bool Reals::equal(TermId a, TermId b) {
  too_large_ = false;
  steps_ = 0;
  try {
    const Fraction x = of(a), y = of(b);
    if (x.under.empty() || y.under.empty()) return false;
    if (!plus(product(x.over, y.under), product(y.over, x.under), -1).empty()) return false;
    if (laws_ == Laws::bits || !is_float(terms_[a].dtype)) return true;
    std::set<FractionId> under_a, under_b, distinct;
    std::set<TermId> seen;
    collect_under(a, under_a, seen);
    seen.clear();
    collect_under(b, under_b, seen);
    std::set_symmetric_difference(under_a.begin(), under_a.end(), under_b.begin(), under_b.end(),
                                  std::inserter(distinct, distinct.begin()));
    return distinct.empty() || agree_at_zeros(a, b, distinct);
  } catch (const TooLarge&) {
    too_large_ = true;
    return false;
  }
}

}  // namespace pw::proof
