// Floats as real numbers, or as values without laws.
// Over the reals, casts between floats vanish and every function is exact, so equality here ignores
// rounding, overflow, NaN, and the sign of zero. prove.cpp therefore never reports `same_bits` from
// it: it searches for overflow and compares precisions, and then reports `rounds`. With Laws::bits
// an op is an atom over its operands, and only commutation and equal operands are known.
#include "proof/reals/float_laws.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "proof/reals/normal_forms.hpp"

namespace pw::proof {

/// A read is an atom named by its input and position; its dtype is fixed by the name.
Fraction FloatLaws::of(const Term& term) {
  switch (term.kind) {
    case Term::Kind::number:
      if (term.dtype == DType::b8) return number(term.number != 0 ? 1 : 0);
      if (field_.laws() == Laws::bits)
        return field_.make(
            {fmt::format("{} {:a}", name(term.dtype), term.number), {}, 0, {}, false});
      // Infinity and NaN are not real numbers, so they become atoms without a value. Laws such as
      // x - x = 0 still apply to these atoms; WitnessSearch::undefined examines such terms.
      if (!std::isfinite(term.number))
        return field_.make({fmt::format("number {}", term.number), {}, 0, {}, false});
      return number(Rational::of(term.number));
    case Term::Kind::read: {
      Fraction out = field_.make({"read " + term.name, {}, 0, term.at, term.dtype == DType::b8});
      if (term.dtype == DType::b8) out = ranges_.with_range(std::move(out), {0, 1});
      return out;
    }
    case Term::Kind::index: return sums_.extent_of(term.at[0]);
    case Term::Kind::call: return field_.laws() == Laws::bits ? without_laws(term) : call(term);
    case Term::Kind::reduce: return reduce(term);
    case Term::Kind::lambda: {
      return field_.make(
          {"lambda", {field_.intern(forms_.value(term.args[0]))}, term.level, term.at, false});
    }
    case Term::Kind::opaque: {
      Atom a{"opaque " + term.name, {}, term.level, term.at, term.dtype == DType::b8};
      for (TermId arg : term.args) a.args.push_back(field_.intern(forms_.of(arg)));
      return field_.make(std::move(a));
    }
  }
  return number(0);
}

/// No law: sqrt(x)² ⇒ x fails for x < 0.
Fraction FloatLaws::square_root(const Fraction& x) {
  return field_.function(Atom::Kind::sqrt, {field_.intern(x)});
}

/// Products of exponentials merge in Field::product.
Fraction FloatLaws::exponential(const Fraction& x) {
  if (const auto value = constant(x); value && *value == 0) return number(1);
  return field_.function(Atom::Kind::exp, {field_.intern(x)});
}

/// Functions are reduced to exp, log, and sqrt where an identity holds on their whole domain:
/// expm1, log1p, tanh, and rsqrt. Examples: silu as x / (1 + exp(-x)) and as x * (tanh(x / 2) + 1)
/// / 2 get one form. There is no law log(exp(x)) ⇒ x or pow(x, a) pow(x, b) ⇒ pow(x, a + b).
Fraction FloatLaws::call(const Term& term) {
  std::vector<Fraction> x;
  for (TermId arg : term.args) x.push_back(forms_.value(arg));
  const Function op = term.function;
  const Fraction one = number(1);
  const auto plain = [&] {
    std::vector<FractionId> args;
    for (const Fraction& f : x) args.push_back(field_.intern(f));
    return field_.function(std::string(name(op)), args);
  };
  if (op == Function::cast) return cast(term);
  if (among(op, {Function::add, Function::addmm, Function::join_sum}))
    return field_.add(x[0], x[1]);
  if (op == Function::sub) return field_.add(x[0], x[1], -1);
  if (op == Function::neg) return field_.multiply(number(-1), x[0]);
  if (among(op, {Function::mul, Function::join_product})) return field_.multiply(x[0], x[1]);
  // A divisor that is 0 for all inputs has no inverse; the term stays an atom.
  if (op == Function::div)
    return x[1].over.empty() ? plain() : field_.multiply(x[0], field_.inverse(x[1]));
  // The mask is b8, hence 0 or 1. A branch that is not chosen contributes 0 over the reals, even if
  // floats would give NaN there; prove.cpp searches for such inputs.
  if (op == Function::select)
    return field_.add(field_.multiply(x[0], x[1]),
                      field_.multiply(field_.add(one, x[0], -1), x[2]));
  if (among(op, {Function::maximum, Function::minimum}))
    return order_.extreme(op == Function::maximum, x[0], x[1]);
  if (op == Function::abs) return order_.absolute(x[0]);
  if (op == Function::exp) return exponential(x[0]);
  if (op == Function::expm1) return field_.add(exponential(x[0]), one, -1);
  if (op == Function::log1p) return field_.function("log", {field_.intern(field_.add(x[0], one))});
  if (op == Function::tanh) {  // 2 / (1 + exp(-2 x)) - 1
    const Fraction e = exponential(field_.multiply(number(-2), x[0]));
    return field_.add(field_.multiply(number(2), field_.inverse(field_.add(one, e))), one, -1);
  }
  if (op == Function::sqrt) return square_root(x[0]);
  if (op == Function::rsqrt) return field_.inverse(square_root(x[0]));
  if (op == Function::remainder) {  // of what is a period more or less
    for (const int sign : {1, -1})
      for (Fraction less = field_.add(x[0], x[1], -sign);
           x[1].over.size() == 1 && less.over.size() < x[0].over.size();
           less = field_.add(x[0], x[1], -sign))
        x[0] = less;
    return plain();
  }
  // Small powers are products. Larger ones would expand sums into too many terms.
  if (op == Function::pow) {
    const auto power = constant(x[1]);
    if (power && *power >= 0 && *power <= 8 && power->is_integer()) {
      Fraction out = one;
      for (int i = 0; i < *power; ++i) out = field_.multiply(out, x[0]);
      return out;
    }
  }
  return plain();
}

/// Converts a cast to a float.
/// Rounding is ignored, but fp8 saturates, which no rounding bound covers. A cast is thus
/// min(max(x, -m), m) with the largest number m of the dtype.
Fraction FloatLaws::cast(const Term& term) {
  const DType to = term.dtype, from = terms_[term.args[0]].dtype;
  const Fraction x = forms_.value(term.args[0]);
  if (const double most = saturation(to); most > 0 && from != to) {
    const bool whole = is_integer(from);
    const Rational limit = Rational::of(most);
    return order_.extreme(false, order_.extreme(true, x, number(-limit), whole), number(limit),
                          whole);
  }
  return x;
}

/// Sums are linear, and a mean is a sum divided by its extent. Maxima commute with positive
/// factors: max_i (c x_i) ⇒ c max_i x_i for c > 0, and a minimum is the negated maximum of the
/// negated body. With Laws::bits the body, dtypes, and extent name an atom, because another order
/// of summation rounds differently.
Fraction FloatLaws::reduce(const Term& term) {
  const Ix extent = term.at[0];
  if (field_.laws() == Laws::bits || term.dtype == DType::b8) {
    std::vector<FractionId> args;
    for (TermId arg : term.args) args.push_back(field_.intern(forms_.value(arg)));
    if (term.function == Function::dot) std::sort(args.begin(), args.end());
    std::string of_dtype = std::string(name(term.dtype));
    for (TermId arg : term.args) of_dtype += " " + std::string(name(terms_[arg].dtype));
    return sums_.bound(fmt::format("{} {}", name(term.function), of_dtype),
                       field_.function("operands", args), term.level, extent);
  }
  Fraction body = forms_.value(term.args[0]);
  if (term.function == Function::dot) body = field_.multiply(body, forms_.value(term.args[1]));
  if (among(term.function, {Function::sum, Function::dot, Function::ranks}))
    return sums_.sum(body, term.level, extent);
  if (term.function == Function::mean)
    return field_.multiply(sums_.sum(body, term.level, extent),
                           field_.inverse(sums_.extent_of(extent)));
  if (among(term.function, {Function::amax, Function::amin})) {
    if (!dependence_.depends(body, term.level)) return body;
    const Rational sign = term.function == Function::amax ? 1 : -1;
    body = field_.multiply(number(sign), body);
    const Rational scale = pw::abs(lead(body));
    return field_.multiply(
        number(sign * scale),
        sums_.extreme("amax", field_.multiply(number(1 / scale), body), term.level, extent));
  }
  return sums_.bound(std::string(name(term.function)), body, term.level, extent);
}

}  // namespace pw::proof
