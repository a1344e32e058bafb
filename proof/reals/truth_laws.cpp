// Booleans as polynomials of atoms that are 0 or 1, which makes their connectives a ring: `and` is
// a product, and `not x` is 1 - x.
// The encoding is exact: b8 values are 0 or 1, and Field keeps b * b = b. Two boolean terms are
// equal for all assignments of their atoms exactly if their multilinear polynomials are equal.
// Atoms may be related, such as x < y and y < z; such relations are not used, so unequal
// polynomials prove nothing.
#include "proof/reals/truth_laws.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "proof/reals/normal_forms.hpp"

namespace pw::proof {

/// Connectives come first, since b8 operands have the same laws in both modes. Comparisons of
/// floats have laws only over the reals: NaN makes both x < y and y <= x false.
Fraction TruthLaws::of(const Term& term) {
  const Function op = term.function;
  const Fraction one = number(1);
  const auto is_b8 = [&](std::size_t i) { return terms_[term.args[i]].dtype == DType::b8; };
  if (op == Function::select && is_b8(1) && is_b8(2)) {
    const Fraction mask = forms_.value(term.args[0]);
    const Fraction taken = is_b8(0) ? mask : field_.add(one, order_.is_zero(mask), -1);
    return field_.add(field_.multiply(taken, forms_.of(term.args[1])),
                      field_.multiply(field_.add(one, taken, -1), forms_.of(term.args[2])));
  }
  const bool all_b8 = std::all_of(term.args.begin(), term.args.end(),
                                  [&](TermId arg) { return terms_[arg].dtype == DType::b8; });
  if (all_b8) {
    const Fraction x = forms_.of(term.args[0]);
    if (op == Function::bitwise_not) return field_.add(one, x, -1);
    if (term.args.size() == 2) {
      const Fraction y = forms_.of(term.args[1]), both = field_.multiply(x, y);
      if (among(op, {Function::bitwise_and, Function::mul, Function::minimum})) return both;
      // x or y is x + y - x y; b8 addition saturates at 1.
      if (among(op, {Function::bitwise_or, Function::maximum, Function::add}))
        return field_.add(field_.add(x, y), both, -1);
      // x xor y is x + y - 2 x y.
      if (among(op, {Function::bitwise_xor, Function::ne}))
        return field_.add(field_.add(x, y), both, -2);
      if (op == Function::eq) return field_.add(one, field_.add(field_.add(x, y), both, -2), -1);
      // false < true is the only true case: y (1 - x).
      if (op == Function::lt) return field_.add(y, both, -1);
      if (op == Function::le) return field_.add(one, field_.add(x, both, -1), -1);
    }
  }
  const bool all_whole = std::none_of(term.args.begin(), term.args.end(),
                                      [&](TermId arg) { return is_float(terms_[arg].dtype); });
  if (all_whole) return of_integers(term);
  if (field_.laws() == Laws::bits) return without_laws(term);
  std::vector<Fraction> x;
  for (TermId arg : term.args) x.push_back(forms_.value(arg));
  if (op == Function::lt) return order_.positive_sign(field_.add(x[1], x[0], -1));
  if (op == Function::le)
    return field_.add(one, order_.positive_sign(field_.add(x[0], x[1], -1)), -1);
  if (op == Function::eq) return order_.is_zero(field_.add(x[0], x[1], -1));
  if (op == Function::ne) return field_.add(one, order_.is_zero(field_.add(x[0], x[1], -1)), -1);
  if (op == Function::cast) return field_.add(one, order_.is_zero(x[0]), -1);
  std::vector<FractionId> args;
  for (const Fraction& f : x) args.push_back(field_.intern(f));
  return field_.function(fmt::format("{} b8", name(op)), args, true);
}

/// Comparisons read exact values: 200 + 100 < 100 holds in u8, where the sum is 44. Unknown
/// functions become atoms over exact values and their dtypes.
Fraction TruthLaws::of_integers(const Term& term) {
  const Function op = term.function;
  const Fraction one = number(1);
  if (op == Function::cast)
    return field_.add(one, order_.unsigned_zero("whole zero", forms_.value(term.args[0])), -1);
  if (op == Function::eq) return equal_integers(term);
  if (op == Function::ne) return field_.add(one, equal_integers(term), -1);
  if (among(op, {Function::lt, Function::le})) {
    const Fraction a = forms_.value(term.args[0]), b = forms_.value(term.args[1]);
    const Fraction more = op == Function::lt ? field_.add(b, a, -1) : field_.add(a, b, -1);
    const Fraction above = order_.positive_sign(more, true);
    return op == Function::lt ? above : field_.add(one, above, -1);
  }
  std::vector<FractionId> args;
  std::string dtypes;
  for (TermId arg : term.args) {
    args.push_back(field_.intern(forms_.value(arg)));
    dtypes += " " + std::string(name(terms_[arg].dtype));
  }
  return field_.function(fmt::format("{} b8 of{}", name(op), dtypes), args, true);
}

/// Compares integers of one dtype: equal if their difference is 0 modulo 2^k.
/// If the difference of residues is strictly between -2^k and 2^k, it is 0 modulo 2^k only if it
/// is 0. For different dtypes the exact values are compared.
Fraction TruthLaws::equal_integers(const Term& term) {
  const DType dtype = terms_[term.args[0]].dtype;
  if (dtype != terms_[term.args[1]].dtype || dtype == DType::b8) {
    const Fraction a = forms_.value(term.args[0]), b = forms_.value(term.args[1]);
    const Fraction difference = field_.add(a, b, -1);
    return order_.unsigned_zero("whole zero", difference);
  }
  const Fraction a = forms_.of(term.args[0]), b = forms_.of(term.args[1]);
  const Fraction exact = field_.add(a, b, -1);
  const Fraction difference = residues_.wrapped(exact, dtype);
  const RationalInterval seen = ranges_.interval(difference);
  const Rational period = Rational::of(std::ldexp(1.0, 8 * size_of(dtype)));
  if (seen.above(-period) && seen.below(period))
    return order_.unsigned_zero("whole zero", difference);
  const Fraction negated = residues_.wrapped(field_.multiply(number(-1), difference), dtype);
  return field_.function(fmt::format("zero {}", name(dtype)),
                         {field_.intern(lead(difference) < 0 ? negated : difference)}, true);
}

/// Every summand is 0 or 1, so the sum is positive if any summand is. Nested sums merge: any_i
/// any_k b is any over both indices. A sum over sizes is a nonnegative integer, which is why only
/// `> 0` is kept.
Fraction TruthLaws::any_of(const Term& term) {
  const auto single = [&](const Fraction& f) -> const Atom* {
    if (f.over.size() != 1 || f.under != number(1).under || f.over.begin()->second != 1)
      return nullptr;
    const Monomial& monomial = f.over.begin()->first;
    return monomial.size() == 1 ? &field_.atom(monomial.begin()->first) : nullptr;
  };
  Fraction body = forms_.of(term.args[0]);
  if (const Atom* inner = single(body); inner != nullptr && inner->kind == Atom::Kind::any)
    body = field_[inner->args[0]];
  const Fraction out = sums_.sum(body, term.level, term.at[0]);
  if (const auto known = constant(out)) return number(*known > 0 ? 1 : 0);
  if (const Atom* one = single(out); one != nullptr && one->boolean) return out;
  return field_.function(Atom::Kind::any, {field_.intern(out)}, true);
}

}  // namespace pw::proof
