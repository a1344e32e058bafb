// Integers of the machine in the normal form of reals.cpp. Sums and products of a k-bit dtype are
// polynomials modulo 2^k, with signed residues as coefficients. Order, division, and casts need the
// exact value: interval analysis shows when the polynomial cannot wrap, and otherwise the value is
// an atom. Invariant: a residue is used only where congruent values give equal results.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "proof/reals.hpp"

namespace pw::proof {
namespace {

using Range = Interval<Rational>;

/// Returns the numbers of at most this absolute value.
Range within(const std::optional<Rational>& most) { return most ? Range{-*most, *most} : Range{}; }

}  // namespace

// ---- intervals

Reals::Range Reals::range_of(DType dtype) {
  switch (dtype) {
    case DType::b8: return {0, 1};
    case DType::u8: return {0, 255};
    case DType::i8: return {-128, 127};
    case DType::i32: return {INT32_MIN, INT32_MAX};
    case DType::i64: return {INT64_MIN, INT64_MAX};
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64: break;
  }
  return {};
}

Reals::Range Reals::interval(const Polynomial& p) {
  constexpr int kMostPowers = 63;
  Range sum = Range::point(0);
  for (const auto& [monomial, factor] : p) {
    Range product = Range::point(factor);
    for (const auto& [atom, power] : monomial) {
      Range range;
      if (atoms_[atom].boolean) range = {0, 1};
      if (const auto known = ranges_.find(atom); known != ranges_.end()) range = known->second;
      if (power < 0 || power > kMostPowers) return {};
      product = product * range.power(power);
    }
    sum = sum + product;
  }
  return sum;
}

Reals::Range Reals::interval(const Fraction& f) {
  if (f.under != number(1).under) return {};
  return interval(f.over);
}

Reals::Fraction Reals::with_range(Fraction atom, Range range) {
  ranges_.insert_or_assign(atom.over.begin()->first.begin()->first, range);
  return atom;
}

bool Reals::some_fact_contradicts() {
  const std::vector<Ix> facts = integers_.facts();
  return std::any_of(facts.begin(), facts.end(), [&](Ix fact) {
    std::set<std::uint32_t> held;
    integers_.collect_values(fact, held);
    if (held.size() != 1) return false;
    const TermId term(std::size_t{*held.begin()});
    const Ix value = integers_.value(*held.begin());
    const Range range = interval(this->value(term));
    if (const auto more = integers_.number(integers_.sub(fact, value)))
      return range.below(-Rational(*more));
    const auto more = integers_.number(integers_.add(fact, value));
    return more && range.above(*more);
  });
}

// ---- modulo 2^k

/// Returns the number of bits modulo which an atom is simpler than its exact value: 64 for what an
/// i64 is, or for a sum in which one is.
int Reals::exact_bits(Factor factor) {
  const auto known = exact_bits_.find(factor);
  if (known != exact_bits_.end()) return known->second;
  const Atom a = atoms_[factor];
  int bits = 0;
  if (a.kind == Atom::Kind::exact) {
    bits = 8 * static_cast<int>(size_of(*dtype_named(a.name)));
  } else if (a.kind == Atom::Kind::sum) {
    for (const auto& [monomial, number] : Polynomial(fractions_[a.args[0]].over))
      for (const auto& [inner, power] : monomial) bits = std::max(bits, exact_bits(inner));
  }
  exact_bits_.emplace(factor, bits);
  return bits;
}

/// Returns a polynomial equal modulo 2^bits, without the exact values of integers of that width.
Reals::Fraction Reals::modulo(const Fraction& f, int bits) {
  const auto is_simpler = [&](const auto& part) { return exact_bits(part.first) >= bits; };
  const bool simpler = std::any_of(f.over.begin(), f.over.end(), [&](const auto& summand) {
    return std::any_of(summand.first.begin(), summand.first.end(), is_simpler);
  });
  if (!simpler) return f;
  Fraction out = number(0);
  for (const auto& [monomial, factor] : f.over) {
    Fraction product = number(factor);
    for (const auto& [atom, power] : monomial) {
      const Fraction part = modulo(atom, bits);
      if (power < 0 || power > 64) throw_too_large();
      for (int i = 0; i < power; ++i) product = multiply(product, part);
    }
    out = add(out, product);
  }
  return out;
}

Reals::Fraction Reals::modulo(Factor factor, int bits) {
  const Atom a = atoms_[factor];
  const bool simpler = exact_bits(factor) >= bits;
  if (simpler && a.kind == Atom::Kind::exact) return modulo(Fraction(fractions_[a.args[0]]), bits);
  if (simpler) {
    Indices indices;
    if (const auto body = opened(a, indices))
      return sum_over(std::move(indices), modulo(*body, bits));
  }
  return product_of({{factor, 1}});
}

/// Returns the polynomial modulo 2^k of the dtype, with signed residues as coefficients.
Reals::Fraction Reals::wrapped(const Fraction& exact, DType dtype) {
  if (exact.under != number(1).under) throw_too_large();
  const int bits = 8 * static_cast<int>(size_of(dtype));
  const Fraction f = modulo(exact, bits);
  if (f.under != number(1).under) throw_too_large();
  Fraction out;
  out.under = f.under;
  for (const auto& [monomial, factor] : f.over) {
    if (!factor.is_integer()) throw_too_large();
    const std::int64_t residue = factor.signed_residue(bits);
    if (residue != 0) out.over.emplace(monomial, residue);
  }
  return out;
}

/// Returns an operand as the op converts it to its own dtype.
Reals::Fraction Reals::operand(TermId id, DType in) {
  const DType from = terms_[id].dtype;
  if (is_float(from)) throw_too_large();
  const bool narrows = is_integer(from) && size_of(from) >= size_of(in);
  return wrapped(narrows ? of(id) : value(id), in);
}

/// Returns the exact value of an integer, and any other term itself.
Reals::Fraction Reals::value(TermId id) {
  if (!is_integer(terms_[id].dtype)) return of(id);
  const auto known = values_.find(id);
  if (known != values_.end()) return known->second;
  Fraction out = value_made(id);
  return values_.emplace(id, std::move(out)).first->second;
}

Reals::Fraction Reals::value_made(TermId id) {
  const Term term = terms_[id];
  const Fraction modular = of(id);
  if (term.kind == Term::Kind::index && (term.dtype == DType::i32 || term.dtype == DType::i64))
    return modular;  // granted: these do not wrap around
  const Range range = range_of(term.dtype), seen = interval(modular);
  if (range.contains(seen)) return modular;
  if (seen.high) {
    const Rational period = Rational::of(std::ldexp(1.0, 8 * size_of(term.dtype)));
    const Rational shift = ((*range.high - *seen.high) / period).floor() * period;
    if ((seen + Range::point(shift)).at_least(*range.low)) return add(modular, number(shift));
  }
  if (term.kind == Term::Kind::call && term.function == Function::cast &&
      holds_all(term.dtype, terms_[term.args[0]].dtype))
    return value(term.args[0]);
  if (term.kind == Term::Kind::call && term.function == Function::select &&
      terms_[term.args[0]].dtype == DType::b8 && terms_[term.args[1]].dtype == term.dtype &&
      terms_[term.args[2]].dtype == term.dtype) {
    const Fraction mask = of(term.args[0]);
    return add(multiply(mask, value(term.args[1])),
               multiply(add(number(1), mask, -1), value(term.args[2])));
  }
  return with_range(
      atom({std::string(name(term.dtype)), {intern(modular)}, 0, {}, false, Atom::Kind::exact}),
      range);
}

// ---- terms of integers

Reals::Fraction Reals::made_whole(const Term& term) {
  const Range range = range_of(term.dtype);
  const auto known = [&](Atom a) { return with_range(atom(std::move(a)), range); };
  switch (term.kind) {
    case Term::Kind::number: {
      if (std::isfinite(term.number))
        if (const Rational value = Rational::of(term.number);
            value.is_integer() && range.contains(Range::point(value)))
          return wrapped(number(value), term.dtype);
      return known({fmt::format("{} {:a}", name(term.dtype), term.number), {}, 0, {}, false});
    }
    case Term::Kind::read: {
      Fraction out = known({"read " + term.name, {}, 0, term.at, false});
      return out;
    }
    case Term::Kind::index: {
      if (const auto value = integers_.number(term.at[0]))
        return wrapped(number(*value), term.dtype);
      const std::int64_t low = integers_.nonnegative(term.at[0]) ? 0 : INT64_MIN;
      return with_range(index_at(term.at[0]), {low, INT64_MAX});
    }
    case Term::Kind::call: return whole_call(term);
    case Term::Kind::reduce: return whole_reduce(term);
    case Term::Kind::lambda:
      return atom({"lambda", {intern(value(term.args[0]))}, term.level, term.at, false});
    case Term::Kind::opaque: {
      Atom a{"opaque " + term.name, {}, term.level, term.at, false};
      for (TermId arg : term.args) a.args.push_back(intern(of(arg)));
      return known(std::move(a));
    }
  }
  return number(0);
}

Reals::Fraction Reals::whole_call(const Term& term) {
  const Function op = term.function;
  const bool whole_args = std::none_of(term.args.begin(), term.args.end(),
                                       [&](TermId arg) { return is_float(terms_[arg].dtype); });
  if (op == Function::cast) return whole_cast(term);
  if (!whole_args) return plain_whole(term, range_of(term.dtype));
  if (op == Function::abs) return magnitude(term);
  if (among(op, {Function::shift_left, Function::pow}))
    if (const auto out = by_number(term)) return *out;
  if (among(op, {Function::div, Function::fmod, Function::remainder})) return whole_division(term);
  if (among(op, {Function::maximum, Function::minimum}))
    return wrapped(extreme(op == Function::maximum, value(term.args[0]), value(term.args[1]), true),
                   term.dtype);
  if (among(op, {Function::floor, Function::ceil, Function::trunc, Function::round}))
    return operand(term.args[0], term.dtype);
  if (op == Function::select) {
    const Fraction mask = value(term.args[0]);
    const bool truth = terms_[term.args[0]].dtype == DType::b8;
    const Fraction taken = truth ? mask : add(number(1), unsigned_zero("whole zero", mask), -1);
    const Fraction x = operand(term.args[1], term.dtype), y = operand(term.args[2], term.dtype);
    const Fraction out = add(multiply(taken, x), multiply(add(number(1), taken, -1), y));
    return wrapped(out, term.dtype);
  }
  if (!among(op, {Function::add, Function::addmm, Function::join_sum, Function::sub, Function::neg,
                  Function::mul, Function::join_product, Function::bitwise_not}))
    return plain_whole(term, range_of(term.dtype));
  std::vector<Fraction> x;
  for (TermId arg : term.args) x.push_back(operand(arg, term.dtype));
  Fraction out;
  if (op == Function::sub)
    out = add(x[0], x[1], -1);
  else if (op == Function::neg)
    out = multiply(number(-1), x[0]);
  else if (op == Function::bitwise_not)
    out = add(multiply(number(-1), x[0]), number(-1));
  else if (among(op, {Function::mul, Function::join_product}))
    out = multiply(x[0], x[1]);
  else
    out = add(x[0], x[1]);
  return wrapped(out, term.dtype);
}

/// Returns a left shift or a small power by a number as a product.
std::optional<Reals::Fraction> Reals::by_number(const Term& term) {
  constexpr double kMostFactors = 4;
  const Term& number_of = terms_[term.args[1]];
  if (number_of.kind != Term::Kind::number || term.dtype == DType::b8) return std::nullopt;
  const double by = number_of.number;
  if (std::rint(by) != by || by < 0) return std::nullopt;
  const Fraction x = operand(term.args[0], term.dtype);
  Fraction out = number(1);
  if (term.function == Function::shift_left) {
    if (by >= 8 * size_of(term.dtype)) return number(0);
    out = multiply(number(Rational::of(std::exp2(by))), x);
  } else {
    if (by > kMostFactors) return std::nullopt;
    for (double factor = 0; factor < by; ++factor) out = multiply(out, x);
  }
  return wrapped(out, term.dtype);
}

/// Returns an atom for an operation without laws, over the operands' exact values.
Reals::Fraction Reals::plain_whole(const Term& term, Range range) {
  std::vector<FractionId> args;
  std::string floats;
  for (TermId arg : term.args) {
    args.push_back(intern(value(arg)));
    if (is_float(terms_[arg].dtype)) floats += " " + std::string(name(terms_[arg].dtype));
  }
  const bool bitwise =
      among(term.function, {Function::bitwise_and, Function::bitwise_or, Function::bitwise_xor});
  if (bitwise) {
    std::sort(args.begin(), args.end());
    const Range a = interval(value(term.args[0])), b = interval(value(term.args[1]));
    const bool positive = a.at_least(0), both = positive && b.at_least(0);
    if (term.function == Function::bitwise_and && (positive || b.at_least(0)))
      range = both ? lesser(a, b) : positive ? a : b;
    if (term.function == Function::bitwise_and ? positive || b.at_least(0) : both) range.low = 0;
  }
  return with_range(
      function(fmt::format("{} {}{}", name(term.function), name(term.dtype), floats), args), range);
}

Reals::Fraction Reals::whole_cast(const Term& term) {
  const TermId x = term.args[0];
  const DType from = terms_[x].dtype;
  if (!is_float(from)) return operand(x, term.dtype);
  const Range range = range_of(term.dtype);
  if (const auto whole = whole_number(x)) {
    if (range.contains(interval(*whole))) return wrapped(*whole, term.dtype);
  }
  return with_range(
      function(fmt::format("to {} of {}", name(term.dtype), name(from)), {intern(of(x))}), range);
}

/// Returns the integer that a float term is, if its dtype holds all of them.
std::optional<Reals::Fraction> Reals::whole_number(TermId id) {
  const Term term = terms_[id];
  if (term.kind == Term::Kind::number) {
    const bool exact = std::rint(term.number) == term.number &&
                       std::abs(term.number) <= std::ldexp(1.0, mantissa_bits(term.dtype));
    if (!exact) return std::nullopt;
    return number(Rational::of(term.number));
  }
  if (term.kind != Term::Kind::call) return std::nullopt;
  if (term.function == Function::cast) {
    const DType from = terms_[term.args[0]].dtype;
    if (!holds_all(term.dtype, from)) return std::nullopt;
    return is_float(from) ? whole_number(term.args[0]) : std::optional(value(term.args[0]));
  }
  if (!among(term.function, {Function::maximum, Function::minimum})) return std::nullopt;
  std::vector<Fraction> x;
  for (TermId arg : term.args) {
    if (!is_float(terms_[arg].dtype) ||
        (terms_[arg].dtype != term.dtype && terms_[arg].kind != Term::Kind::number))
      return std::nullopt;
    auto whole = whole_number(arg);
    if (!whole) return std::nullopt;
    x.push_back(std::move(*whole));
  }
  return extreme(term.function == Function::maximum, x[0], x[1], true);
}

/// Returns |x|, which is negative for the least integer of a dtype.
Reals::Fraction Reals::magnitude(const Term& term) {
  const Fraction x = value(term.args[0]);
  const Range seen = interval(x), range = range_of(term.dtype);
  if (seen.at_least(0)) return wrapped(x, term.dtype);
  const Fraction negated = multiply(number(-1), x);
  if (seen.at_most(0)) return wrapped(negated, term.dtype);
  if (seen.above(*range.low))
    return with_range(function("whole abs", {intern(lead(x) < 0 ? negated : x)}),
                      {0, seen.magnitude()});
  const Fraction modular = operand(term.args[0], term.dtype);
  const Fraction other = wrapped(multiply(number(-1), modular), term.dtype);
  return with_range(function(fmt::format("abs {}", name(term.dtype)),
                             {intern(lead(modular) < 0 ? other : modular)}),
                    range);
}

/// Evaluates division: quotients truncate, `fmod` has the dividend's sign, `remainder` the
/// divisor's. Division by 0 gives 0.
Reals::Fraction Reals::whole_division(const Term& term) {
  Fraction a = value(term.args[0]);
  const Fraction b = value(term.args[1]);
  const bool one = constant(b) == Rational(1);
  Function op = term.function;
  if (one) return op == Function::div ? wrapped(a, term.dtype) : number(0);
  if (op == Function::remainder) {  // what is a period more or less has the same one
    for (const int sign : {1, -1})
      for (Fraction less = add(a, b, -sign); b.over.size() == 1 && less.over.size() < a.over.size();
           less = add(a, b, -sign))
        a = less;
  }
  const Range x = interval(a), y = interval(b);
  const std::optional<Rational> most = x.magnitude();
  std::optional<Rational> rest = y.magnitude();  // the largest absolute value of a remainder
  if (rest) rest = std::max<Rational>(*rest - 1, 0);
  const bool positive = x.at_least(0);
  if (op == Function::remainder && positive && y.above(0)) op = Function::fmod;
  Range range;
  if (op == Function::div) {
    if (positive && x.high && y.above(*x.high)) return number(0);
    range = within(most);
    if (positive && y.at_least(0)) range.low = 0;
  } else if (op == Function::fmod) {
    if (most && y.above(*most) && y.above(0)) return wrapped(a, term.dtype);
    range = within(most && (!rest || *most < *rest) ? most : rest);
    if (positive) range.low = 0;
    if (x.at_most(0)) range.high = 0;
  } else {
    range = within(rest);
    if (y.at_least(0)) range.low = 0;
    if (y.at_most(0)) range.high = 0;
  }
  return wrapped(
      with_range(function(fmt::format("whole {}", name(op)), {intern(a), intern(b)}), range),
      term.dtype);
}

// ---- reductions of integers

Reals::Fraction Reals::whole_reduce(const Term& term) {
  const Ix extent = term.at[0];
  const bool whole = std::none_of(term.args.begin(), term.args.end(),
                                  [&](TermId arg) { return is_float(terms_[arg].dtype); });
  if (whole && among(term.function, {Function::sum, Function::dot, Function::ranks})) {
    Fraction body = operand(term.args[0], term.dtype);
    const Fraction by =
        term.function == Function::dot ? operand(term.args[1], term.dtype) : number(1);
    body = multiply(body, by);
    body = wrapped(body, term.dtype);
    const Fraction out = sum(body, term.level, extent);
    return wrapped(out, term.dtype);
  }
  const Fraction body = value(term.args[0]);
  const bool extreme = among(term.function, {Function::amax, Function::amin});
  if (extreme && whole)
    return wrapped(whole_extreme(term.function == Function::amax, body, {term.level, extent}),
                   term.dtype);
  std::string dtypes = std::string(name(term.dtype));
  for (TermId arg : term.args) dtypes += " " + std::string(name(terms_[arg].dtype));
  return with_range(
      bound(fmt::format("{} {}", name(term.function), dtypes), body, term.level, extent),
      range_of(term.dtype));
}

/// Returns the greatest or least of exact values over an index. An extreme of an extreme is taken
/// over its parts, and terms without the index move outside.
Reals::Fraction Reals::whole_extreme(bool greatest, const Fraction& body, const Index& index) {
  if (!depends(body, index.level)) return body;
  const Clauses clauses = clauses_of(body);
  std::vector<Fraction> parts;
  if (greatest && clauses.size() == 1)
    for (FractionId literal : *clauses.begin()) parts.push_back(fractions_[literal]);
  if (!greatest)
    for (const auto& clause : clauses) parts.push_back(of_clauses({clause}, true));
  if (parts.size() > 1) {
    Fraction out = whole_extreme(greatest, parts[0], index);
    for (std::size_t i = 1; i < parts.size(); ++i)
      out = extreme(greatest, out, whole_extreme(greatest, parts[i], index), true);
    return out;
  }
  Fraction moving = number(0), rest = number(0);
  for (const auto& [monomial, factor] : body.over) {
    const Fraction part = product_of(monomial);
    (depends(part, index.level) ? moving : rest).over.emplace(monomial, factor);
  }
  if (!rest.over.empty()) return add(whole_extreme(greatest, moving, index), rest);
  if (lead(moving) < 0)
    return multiply(number(-1), whole_extreme(!greatest, multiply(number(-1), moving), index));
  return with_range(
      bound(greatest ? "whole amax" : "whole amin", moving, index.level, index.extent),
      interval(moving));
}

// ---- truths of integers

Reals::Fraction Reals::whole_truth(const Term& term) {
  const Function op = term.function;
  const Fraction one = number(1);
  if (op == Function::cast) return add(one, unsigned_zero("whole zero", value(term.args[0])), -1);
  if (op == Function::eq) return equals_whole(term);
  if (op == Function::ne) return add(one, equals_whole(term), -1);
  if (among(op, {Function::lt, Function::le})) {
    const Fraction a = value(term.args[0]), b = value(term.args[1]);
    const Fraction more = op == Function::lt ? add(b, a, -1) : add(a, b, -1);
    const Fraction above = positive_sign(more, true);
    return op == Function::lt ? above : add(one, above, -1);
  }
  std::vector<FractionId> args;
  std::string dtypes;
  for (TermId arg : term.args) {
    args.push_back(intern(value(arg)));
    dtypes += " " + std::string(name(terms_[arg].dtype));
  }
  return function(fmt::format("{} b8 of{}", name(op), dtypes), args, true);
}

/// Compares integers of one dtype: equal if their difference is 0 modulo 2^k.
Reals::Fraction Reals::equals_whole(const Term& term) {
  const DType dtype = terms_[term.args[0]].dtype;
  if (dtype != terms_[term.args[1]].dtype || dtype == DType::b8) {
    const Fraction a = value(term.args[0]), b = value(term.args[1]);
    const Fraction difference = add(a, b, -1);
    return unsigned_zero("whole zero", difference);
  }
  const Fraction a = of(term.args[0]), b = of(term.args[1]);
  const Fraction exact = add(a, b, -1);
  const Fraction difference = wrapped(exact, dtype);
  const Range seen = interval(difference);
  const Rational period = Rational::of(std::ldexp(1.0, 8 * size_of(dtype)));
  if (seen.above(-period) && seen.below(period)) return unsigned_zero("whole zero", difference);
  const Fraction negated = wrapped(multiply(number(-1), difference), dtype);
  return function(fmt::format("zero {}", name(dtype)),
                  {intern(lead(difference) < 0 ? negated : difference)}, true);
}

/// Returns 1 if the exact difference is 0, otherwise 0.
Reals::Fraction Reals::unsigned_zero(const std::string& name, const Fraction& difference) {
  if (const auto known = constant(difference)) return number(*known == 0 ? 1 : 0);
  const Range seen = interval(difference);
  if (seen.above(0) || seen.below(0)) return number(0);
  const Fraction x = lead(difference) < 0 ? multiply(number(-1), difference) : difference;
  if (x.over.size() == 1 && x.over.begin()->first.size() == 1 && lead(x) == 1 &&
      atoms_[x.over.begin()->first.begin()->first].boolean)
    return add(number(1), x, -1);
  return function(name, {intern(x)}, true);
}

}  // namespace pw::proof
