// Integers of the machine. Sums and products of a k-bit dtype are polynomials modulo 2^k, with
// signed residues as coefficients. Order, division, and casts need the exact value: interval
// analysis shows when the polynomial cannot wrap, and otherwise the value is an atom. Invariant: a
// residue is used only where congruent values give equal results.
// Example: in i32, (a + b) - b ⇒ a holds modulo 2^32 although a + b may wrap. (a + b) / 2 ⇒ a / 2 +
// b / 2 does not: the division reads the exact, wrapped value of a + b, which is an atom.
#include "proof/reals/integer_laws.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "proof/reals/normal_forms.hpp"

namespace pw::proof {
namespace {

/// Returns the numbers of at most this absolute value.
RationalInterval within(const std::optional<Rational>& most) {
  return most ? RationalInterval{-*most, *most} : RationalInterval{};
}

}  // namespace

/// Returns the exact value, for ops that are not functions of the residue. The polynomial p of the
/// term is congruent to the value. If p's interval fits the dtype, they are equal. If it fits after
/// a shift by a multiple of 2^k, the value is p plus that shift. A widening cast and a choice keep
/// their operands' values. Otherwise the value is an atom that depends on p alone, which is sound:
/// equal residues have equal values.
Fraction IntegerLaws::value(TermId id) {
  const Term term = terms_[id];
  const Fraction modular = forms_.of(id);
  if (term.kind == Term::Kind::index && (term.dtype == DType::i32 || term.dtype == DType::i64))
    return modular;  // granted: these do not wrap around
  // Wrapping adds one multiple of 2^k that may differ by input. It is the same for all inputs only
  // if the shifted interval is inside the range.
  const RationalInterval range = range_of(term.dtype), seen = ranges_.interval(modular);
  if (range.contains(seen)) return modular;
  if (seen.high) {
    const Rational period = Rational::of(std::ldexp(1.0, 8 * size_of(term.dtype)));
    const Rational shift = ((*range.high - *seen.high) / period).floor() * period;
    if ((seen + RationalInterval::point(shift)).at_least(*range.low))
      return field_.add(modular, number(shift));
  }
  if (term.kind == Term::Kind::call && term.function == Function::cast &&
      holds_all(term.dtype, terms_[term.args[0]].dtype))
    return forms_.value(term.args[0]);
  // ~x is -1 - x, or 255 - x in u8, and never wraps.
  if (term.kind == Term::Kind::call && term.function == Function::bitwise_not &&
      terms_[term.args[0]].dtype == term.dtype)
    return field_.add(number(*range.low + *range.high), forms_.value(term.args[0]), -1);
  if (term.kind == Term::Kind::call && term.function == Function::select &&
      terms_[term.args[0]].dtype == DType::b8 && terms_[term.args[1]].dtype == term.dtype &&
      terms_[term.args[2]].dtype == term.dtype) {
    const Fraction mask = forms_.of(term.args[0]);
    return field_.add(field_.multiply(mask, forms_.value(term.args[1])),
                      field_.multiply(field_.add(number(1), mask, -1), forms_.value(term.args[2])));
  }
  return ranges_.with_range(field_.make({std::string(name(term.dtype)),
                                         {field_.intern(modular)},
                                         0,
                                         {},
                                         false,
                                         Atom::Kind::exact}),
                            range);
}

/// An atom's range is that of its dtype, since every stored integer is in it.
Fraction IntegerLaws::of(const Term& term) {
  const RationalInterval range = range_of(term.dtype);
  const auto known = [&](Atom a) { return ranges_.with_range(field_.make(std::move(a)), range); };
  switch (term.kind) {
    case Term::Kind::number: {
      if (std::isfinite(term.number))
        if (const Rational value = Rational::of(term.number);
            value.is_integer() && range.contains(RationalInterval::point(value)))
          return residues_.wrapped(number(value), term.dtype);
      return known({fmt::format("{} {:a}", name(term.dtype), term.number), {}, 0, {}, false});
    }
    case Term::Kind::read: {
      Fraction out = known({"read " + term.name, {}, 0, term.at, false});
      return out;
    }
    case Term::Kind::index: {
      if (const auto value = integers_.number(term.at[0]))
        return residues_.wrapped(number(*value), term.dtype);
      // An index is congruent to its polynomial in any dtype; only value() grants that it does not
      // wrap.
      const std::int64_t low = integers_.nonnegative(term.at[0]) ? 0 : INT64_MIN;
      return ranges_.with_range(field_.index(term.at[0]), {low, INT64_MAX});
    }
    case Term::Kind::call: return call(term);
    case Term::Kind::reduce: return reduce(term);
    case Term::Kind::lambda:
      return field_.make(
          {"lambda", {field_.intern(forms_.value(term.args[0]))}, term.level, term.at, false});
    case Term::Kind::opaque: {
      Atom a{"opaque " + term.name, {}, term.level, term.at, false};
      for (TermId arg : term.args) a.args.push_back(field_.intern(forms_.of(arg)));
      return known(std::move(a));
    }
  }
  return number(0);
}

/// Operations of the ring Z/2^k read residues: add, sub, neg, mul, and ~x = -x - 1. All others read
/// exact values. A float operand has no residue, so such a term is an atom.
Fraction IntegerLaws::call(const Term& term) {
  const Function op = term.function;
  const bool whole_args = std::none_of(term.args.begin(), term.args.end(),
                                       [&](TermId arg) { return is_float(terms_[arg].dtype); });
  if (op == Function::cast) return cast(term);
  if (!whole_args) return plain(term, range_of(term.dtype));
  if (op == Function::abs) return magnitude(term);
  if (among(op, {Function::shift_left, Function::pow}))
    if (const auto out = by_number(term)) return *out;
  if (among(op, {Function::div, Function::fmod, Function::remainder})) return division(term);
  if (among(op, {Function::maximum, Function::minimum}))
    return residues_.wrapped(order_.extreme(op == Function::maximum, forms_.value(term.args[0]),
                                            forms_.value(term.args[1]), true),
                             term.dtype);
  // Integers are their own floor, so rounding only converts the dtype.
  if (among(op, {Function::floor, Function::ceil, Function::trunc, Function::round}))
    return forms_.operand(term.args[0], term.dtype);
  // `mask * x + (1 - mask) * y` is x or y, since a b8 mask is 0 or 1. The ring of residues
  // suffices.
  if (op == Function::select) {
    const Fraction mask = forms_.value(term.args[0]);
    const bool truth = terms_[term.args[0]].dtype == DType::b8;
    const Fraction taken =
        truth ? mask : field_.add(number(1), order_.unsigned_zero("whole zero", mask), -1);
    const Fraction x = forms_.operand(term.args[1], term.dtype),
                   y = forms_.operand(term.args[2], term.dtype);
    const Fraction out =
        field_.add(field_.multiply(taken, x), field_.multiply(field_.add(number(1), taken, -1), y));
    return residues_.wrapped(out, term.dtype);
  }
  if (!among(op, {Function::add, Function::addmm, Function::join_sum, Function::sub, Function::neg,
                  Function::mul, Function::join_product, Function::bitwise_not}))
    return plain(term, range_of(term.dtype));
  std::vector<Fraction> x;
  for (TermId arg : term.args) x.push_back(forms_.operand(arg, term.dtype));
  Fraction out;
  if (op == Function::sub)
    out = field_.add(x[0], x[1], -1);
  else if (op == Function::neg)
    out = field_.multiply(number(-1), x[0]);
  else if (op == Function::bitwise_not)
    out = field_.add(field_.multiply(number(-1), x[0]), number(-1));
  else if (among(op, {Function::mul, Function::join_product}))
    out = field_.multiply(x[0], x[1]);
  else
    out = field_.add(x[0], x[1]);
  return residues_.wrapped(out, term.dtype);
}

/// Returns a left shift or a small power by a number as a product.
/// A shift by at least the width gives 0. Powers above 4 stay atoms, because the product of a sum
/// would have too many terms. Nothing if the exponent is negative, fractional, or unknown.
std::optional<Fraction> IntegerLaws::by_number(const Term& term) {
  constexpr double kMostFactors = 4;
  const Term& number_of = terms_[term.args[1]];
  if (number_of.kind != Term::Kind::number || term.dtype == DType::b8) return std::nullopt;
  const double by = number_of.number;
  if (std::rint(by) != by || by < 0) return std::nullopt;
  const Fraction x = forms_.operand(term.args[0], term.dtype);
  Fraction out = number(1);
  if (term.function == Function::shift_left) {
    if (by >= 8 * size_of(term.dtype)) return number(0);
    out = field_.multiply(number(Rational::of(std::exp2(by))), x);
  } else {
    if (by > kMostFactors) return std::nullopt;
    for (double factor = 0; factor < by; ++factor) out = field_.multiply(out, x);
  }
  return residues_.wrapped(out, term.dtype);
}

/// Returns an atom for an operation without laws, over the operands' exact values.
/// Bitwise ops commute, so their operands are sorted. Their ranges follow from two's complement: x
/// & y has a zero wherever either has, so it is between 0 and a nonnegative operand. x | y and x ^
/// y of nonnegative numbers are nonnegative; no upper bound below the dtype's is used.
Fraction IntegerLaws::plain(const Term& term, RationalInterval range) {
  std::vector<FractionId> args;
  std::string floats;
  for (TermId arg : term.args) {
    args.push_back(field_.intern(forms_.value(arg)));
    if (is_float(terms_[arg].dtype)) floats += " " + std::string(name(terms_[arg].dtype));
  }
  const bool bitwise =
      among(term.function, {Function::bitwise_and, Function::bitwise_or, Function::bitwise_xor});
  if (bitwise) {
    std::sort(args.begin(), args.end());
    const RationalInterval a = ranges_.interval(forms_.value(term.args[0])),
                           b = ranges_.interval(forms_.value(term.args[1]));
    const bool positive = a.at_least(0), both = positive && b.at_least(0);
    if (term.function == Function::bitwise_and && (positive || b.at_least(0)))
      range = both ? lesser(a, b) : positive ? a : b;
    if (term.function == Function::bitwise_and ? positive || b.at_least(0) : both) range.low = 0;
  }
  return ranges_.with_range(
      field_.function(fmt::format("{} {}{}", name(term.function), name(term.dtype), floats), args),
      range);
}

/// Integer casts keep the residue. A cast from a float truncates and saturates, so it is an atom
/// unless the float is known to be an integer in range.
Fraction IntegerLaws::cast(const Term& term) {
  TermId x = term.args[0];
  const DType from = terms_[x].dtype;
  if (!is_float(from)) return forms_.operand(x, term.dtype);
  if (terms_[x].function == Function::trunc) x = terms_[x].args[0];  // as the cast does
  const RationalInterval range = range_of(term.dtype);
  if (const auto whole = whole_number(x)) {
    if (range.contains(ranges_.interval(*whole))) return residues_.wrapped(*whole, term.dtype);
  }
  return ranges_.with_range(
      field_.function(fmt::format("to {} of {}", name(term.dtype), name(from)),
                      {field_.intern(forms_.of(x))}),
      range);
}

/// Returns the integer that a float term is, if its dtype holds all of them.
/// Examples: f32(x) for x of i8, min(f32(x), 127.0), and literals up to 2^24. f32(x) for x of i32
/// has no such form, since it rounds. Nothing means unknown.
std::optional<Fraction> IntegerLaws::whole_number(TermId id) {
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
    return is_float(from) ? whole_number(term.args[0]) : std::optional(forms_.value(term.args[0]));
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
  return order_.extreme(term.function == Function::maximum, x[0], x[1], true);
}

/// Returns |x|, which is negative for the least integer of a dtype.
/// If x cannot be the least integer of the dtype, the exact |x| is an atom whose argument is x or
/// -x. Otherwise |x| is a function of the residue, and |x| = |-x| still holds modulo 2^k.
Fraction IntegerLaws::magnitude(const Term& term) {
  const Fraction x = forms_.value(term.args[0]);
  const RationalInterval seen = ranges_.interval(x), range = range_of(term.dtype);
  if (seen.at_least(0)) return residues_.wrapped(x, term.dtype);
  const Fraction negated = field_.multiply(number(-1), x);
  if (seen.at_most(0)) return residues_.wrapped(negated, term.dtype);
  if (seen.above(*range.low))
    return ranges_.with_range(
        field_.function("whole abs", {field_.intern(lead(x) < 0 ? negated : x)}),
        {0, seen.magnitude()});
  const Fraction modular = forms_.operand(term.args[0], term.dtype);
  const Fraction other = residues_.wrapped(field_.multiply(number(-1), modular), term.dtype);
  return ranges_.with_range(field_.function(fmt::format("abs {}", name(term.dtype)),
                                            {field_.intern(lead(modular) < 0 ? other : modular)}),
                            range);
}

/// Evaluates division: quotients truncate, `fmod` has the dividend's sign, `remainder` the
/// divisor's. Division by 0 gives 0.
/// Quotients and remainders are functions of exact values: 200 + 100 is 44 in u8, and 44 / 3 is not
/// 100. A result is 0 or the dividend where the divisor is larger than it. Ranges follow from |a /
/// b| ≤ |a| and |a mod b| < |b|. For b = 0 the result is 0, which each range contains. The quotient
/// of the least integer by -1 is outside the dtype, so the result is wrapped.
Fraction IntegerLaws::division(const Term& term) {
  Fraction a = forms_.value(term.args[0]);
  const Fraction b = forms_.value(term.args[1]);
  const bool one = constant(b) == Rational(1);
  Function op = term.function;
  if (one) return op == Function::div ? residues_.wrapped(a, term.dtype) : number(0);
  if (op == Function::remainder) {  // what is a period more or less has the same one
    // remainder(x + y, y) is remainder(x, y). Only shorter sums are tried, so the loop ends.
    for (const int sign : {1, -1})
      for (Fraction less = field_.add(a, b, -sign);
           b.over.size() == 1 && less.over.size() < a.over.size(); less = field_.add(a, b, -sign))
        a = less;
  }
  const RationalInterval x = ranges_.interval(a), y = ranges_.interval(b);
  const std::optional<Rational> most = x.magnitude();
  std::optional<Rational> rest = y.magnitude();  // the largest absolute value of a remainder
  if (rest) rest = std::max<Rational>(*rest - 1, 0);
  const bool positive = x.at_least(0);
  // For signs that agree, both remainders are equal.
  if (op == Function::remainder && positive && y.above(0)) op = Function::fmod;
  RationalInterval range;
  if (op == Function::div) {
    if (positive && x.high && y.above(*x.high)) return number(0);
    range = within(most);
    if (positive && y.at_least(0)) range.low = 0;
  } else if (op == Function::fmod) {
    if (most && y.above(*most) && y.above(0)) return residues_.wrapped(a, term.dtype);
    range = within(most && (!rest || *most < *rest) ? most : rest);
    if (positive) range.low = 0;
    if (x.at_most(0)) range.high = 0;
  } else {
    range = within(rest);
    if (y.at_least(0)) range.low = 0;
    if (y.at_most(0)) range.high = 0;
  }
  return residues_.wrapped(ranges_.with_range(field_.function(fmt::format("whole {}", name(op)),
                                                              {field_.intern(a), field_.intern(b)}),
                                              range),
                           term.dtype);
}

/// A sum or a dot product is a polynomial modulo 2^k in any order. An extreme reads exact values.
/// Any other reduction, such as a product, is an atom over its body.
Fraction IntegerLaws::reduce(const Term& term) {
  const Ix extent = term.at[0];
  const bool whole = std::none_of(term.args.begin(), term.args.end(),
                                  [&](TermId arg) { return is_float(terms_[arg].dtype); });
  if (whole && among(term.function, {Function::sum, Function::dot, Function::ranks})) {
    Fraction body = forms_.operand(term.args[0], term.dtype);
    const Fraction by =
        term.function == Function::dot ? forms_.operand(term.args[1], term.dtype) : number(1);
    body = field_.multiply(body, by);
    body = residues_.wrapped(body, term.dtype);
    const Fraction out = sums_.sum(body, term.level, extent);
    return residues_.wrapped(out, term.dtype);
  }
  const Fraction body = forms_.value(term.args[0]);
  const bool extreme = among(term.function, {Function::amax, Function::amin});
  // The result is one of the values, so it fits the dtype if its operands do.
  if (extreme && whole)
    return residues_.wrapped(
        extreme_over(term.function == Function::amax, body, {term.level, extent}), term.dtype);
  std::string dtypes = std::string(name(term.dtype));
  for (TermId arg : term.args) dtypes += " " + std::string(name(terms_[arg].dtype));
  return ranges_.with_range(
      sums_.bound(fmt::format("{} {}", name(term.function), dtypes), body, term.level, extent),
      range_of(term.dtype));
}

/// Returns the greatest or least of exact values over an index. An extreme of an extreme
/// becomes one over its parts, and terms without the index move outside.
/// max_i max(p, q) ⇒ max(max_i p, max_i q), max_i (p + c) ⇒ c + max_i p, and max_i (-p) ⇒ -min_i p.
/// The remaining body has a positive leading coefficient. Coefficients are not divided out, since
/// the quotient may not be an integer.
Fraction IntegerLaws::extreme_over(bool greatest, const Fraction& body, const Sums::Index& index) {
  if (!dependence_.depends(body, index.level)) return body;
  const Clauses clauses = order_.clauses_of(body);
  std::vector<Fraction> parts;
  if (greatest && clauses.size() == 1)
    for (FractionId literal : *clauses.begin()) parts.push_back(field_[literal]);
  if (!greatest)
    for (const auto& clause : clauses) parts.push_back(order_.of_clauses({clause}, true));
  if (parts.size() > 1) {
    Fraction out = extreme_over(greatest, parts[0], index);
    for (std::size_t i = 1; i < parts.size(); ++i)
      out = order_.extreme(greatest, out, extreme_over(greatest, parts[i], index), true);
    return out;
  }
  Fraction moving = number(0), rest = number(0);
  for (const auto& [monomial, factor] : body.over) {
    const Fraction part = product_of(monomial);
    (dependence_.depends(part, index.level) ? moving : rest).over.emplace(monomial, factor);
  }
  if (!rest.over.empty()) return field_.add(extreme_over(greatest, moving, index), rest);
  if (lead(moving) < 0)
    return field_.multiply(number(-1),
                           extreme_over(!greatest, field_.multiply(number(-1), moving), index));
  return ranges_.with_range(
      sums_.extreme(greatest ? "whole amax" : "whole amin", moving, index.level, index.extent),
      ranges_.interval(moving));
}

}  // namespace pw::proof
