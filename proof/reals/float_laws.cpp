// Floats as real numbers, or as values without laws.
#include "proof/reals/float_laws.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "proof/reals/normal_forms.hpp"

namespace pw::proof {

Fraction FloatLaws::of(const Term& term) {
  switch (term.kind) {
    case Term::Kind::number:
      if (term.dtype == DType::b8) return number(term.number != 0 ? 1 : 0);
      if (field_.laws() == Laws::bits)
        return field_.make(
            {fmt::format("{} {:a}", name(term.dtype), term.number), {}, 0, {}, false});
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

Fraction FloatLaws::square_root(const Fraction& x) {
  return field_.function(Atom::Kind::sqrt, {field_.intern(x)});
}

Fraction FloatLaws::exponential(const Fraction& x) {
  if (const auto value = constant(x); value && *value == 0) return number(1);
  return field_.function(Atom::Kind::exp, {field_.intern(x)});
}

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
  if (op == Function::div)
    return x[1].over.empty() ? plain() : field_.multiply(x[0], field_.inverse(x[1]));
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
        sums_.bound("amax", field_.multiply(number(1 / scale), body), term.level, extent));
  }
  return sums_.bound(std::string(name(term.function)), body, term.level, extent);
}

}  // namespace pw::proof
