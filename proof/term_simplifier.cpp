// Local rewriting of terms on construction. Each rewrite preserves all bits in IEEE arithmetic:
// commutation of one operation, casts through a wider dtype, idempotent extrema, saturation
// followed by a cast. Rewrites that reassociate or distribute are absent; they belong to reals/.
// The rules of an extremum of zeros are recorded in any_zero(), because the chosen zero depends on
// the order of the operands.
// Two conventions hold for all rules. NaN has no payload, so a rule may change which NaN results.
// An operand can have another dtype than its term, since a rank-0 operand is weak. A rule that
// returns an operand therefore requires `same_dtype`; otherwise the result would skip a rounding.
#include "proof/term_simplifier.hpp"

#include <cmath>

namespace pw::proof {
namespace {

bool commutes(Function f) {
  return among(f,
               {Function::add, Function::mul, Function::maximum, Function::minimum, Function::eq,
                Function::ne, Function::bitwise_and, Function::bitwise_or, Function::bitwise_xor});
}

bool idempotent(Function f) {
  return among(f,
               {Function::maximum, Function::minimum, Function::bitwise_and, Function::bitwise_or});
}

}  // namespace

/// Distinguishes the two zeros: x + -0.0 is x for every x, but x + 0.0 maps -0.0 to 0.0.
bool TermSimplifier::is_number(TermId id, double value) const {
  const Term& term = terms_[id];
  return term.kind == Term::Kind::number && term.number == value &&
         std::signbit(term.number) == std::signbit(value);
}

/// Simplifies a conversion. Casting f16 to f32 to bf16 equals casting f16 to bf16: the first step
/// is exact, so the value is rounded once either way. Casting f32 to bf16 to f32 stays, since it
/// loses bits. Integer casts wrap around, and an exact step before does not change the residue.
TermId TermSimplifier::cast(Term term) {
  const TermId x = term.args[0];
  const Term inner = terms_[x];
  if (inner.dtype == term.dtype) return x;
  if (inner.kind == Term::Kind::call && inner.function == Function::cast) {
    const Term innermost = terms_[inner.args[0]];
    // If the intermediate dtype represents the value, the cast skips it.
    if (holds_all(inner.dtype, innermost.dtype)) {
      Term direct = term;
      direct.args = inner.args;
      return cast(std::move(direct));
    }
  }
  // A literal that f32 represents is exact in every dtype that holds f32.
  if (inner.kind == Term::Kind::number && is_float(term.dtype) && is_float(inner.dtype) &&
      holds_all(term.dtype, DType::f32) &&
      static_cast<double>(static_cast<float>(inner.number)) == inner.number)
    return terms_.number(inner.number, term.dtype);
  // Only for f8e4m3, which saturates at the same bounds; f8e5m2 keeps infinity, which a bound does
  // not.
  const double most = term.dtype == DType::f8e4m3 ? saturation(term.dtype) : 0;
  if (most > 0 && inner.kind == Term::Kind::call && is_float(inner.dtype) &&
      among(inner.function, {Function::minimum, Function::maximum})) {
    for (std::size_t i = 0; i < 2; ++i) {
      // min(x, 448) and max(x, -448) change only values that the cast saturates to the same bound.
      // NaN passes through both.
      const double bound = inner.function == Function::minimum ? most : -most;
      if (!is_number(inner.args[i], bound)) continue;
      const Term rest = terms_[inner.args[1 - i]];
      // An integer below the bounds is exact in 11 bits; larger values saturate.
      const bool whole = !is_float(rest.dtype) && mantissa_bits(inner.dtype) >= 11;
      if (rest.dtype != inner.dtype && !whole) continue;
      Term direct = term;
      direct.args = {inner.args[1 - i]};
      return cast(std::move(direct));
    }
  }
  return terms_.intern(std::move(term));
}

/// Applies bit-preserving rewrites that depend on dtypes only through equality.
/// They hold for integers modulo 2^k, b8, and IEEE floats alike, so a placeholder may stand for any
/// of them. Examples: x - 0.0 is x also for x = -0.0, and x * 1 is x. x + 0.0 ⇒ x is absent,
/// because -0.0 + 0.0 is 0.0.
std::optional<TermId> TermSimplifier::of_any_dtype(const Term& term) {
  const auto is = [&](std::size_t i, Function function) {
    return arg(term, i).kind == Term::Kind::call && arg(term, i).function == function;
  };
  const Function op = term.function;
  if (op == Function::sub && is_number(term.args[1], 0.0) && same_dtype(term, 0))
    return term.args[0];
  if (among(op, {Function::div, Function::mul}) && is_number(term.args[1], 1.0) &&
      same_dtype(term, 0))
    return term.args[0];
  if (op == Function::mul && is_number(term.args[0], 1.0) && same_dtype(term, 1))
    return term.args[1];
  // |x| is x or -x, whose squares are equal.
  // In i8, |-128| wraps to -128, whose square is still the same modulo 2^8.
  if (op == Function::mul && term.args[0] == term.args[1] && is(0, Function::abs) &&
      same_dtype(term, 0)) {
    const TermId x = arg(term, 0).args[0];
    if (terms_[x].dtype == term.dtype) return terms_.call(op, term.dtype, {x, x});
  }
  // A remainder is smaller than the divisor and has the dividend's sign.
  if (op == Function::fmod && is(0, Function::fmod) && arg(term, 0).args[1] == term.args[1] &&
      same_dtype(term, 0) && same_dtype(term, 1) &&
      arg(term, 0).dtype == terms_[arg(term, 0).args[0]].dtype)
    return term.args[0];
  // Only lt and le remain, so a > b and b < a become one term. Both are false for NaN.
  if (op == Function::gt)
    return terms_.call(Function::lt, term.dtype, {term.args[1], term.args[0]});
  if (op == Function::ge)
    return terms_.call(Function::le, term.dtype, {term.args[1], term.args[0]});
  return op == Function::lt ? below_extreme(term) : std::nullopt;
}

/// Simplifies a < b where one of them is an extreme. Comparisons with NaN are false, and an extreme
/// of NaN is NaN.
std::optional<TermId> TermSimplifier::below_extreme(const Term& term) {
  const auto is = [&](std::size_t i, Function function) {
    return arg(term, i).kind == Term::Kind::call && arg(term, i).function == function;
  };
  if (term.args[0] == term.args[1]) return terms_.number(0, DType::b8);
  // a < max(a, d) is a < d: a NaN in either operand makes both sides false. a < min(c, d) is `a < c
  // and a < d` for the same reason. a < max(c, d) is not an `or` in general: for d = NaN the left
  // is false, but a < c may hold.
  const auto below = [&](TermId a, TermId b) {
    return terms_.call(Function::lt, term.dtype, {a, b});
  };
  const auto of = [&](std::size_t i) {
    return std::pair(arg(term, i).args[0], arg(term, i).args[1]);
  };
  // True if the extreme compares its operands as they are, without converting one.
  const auto plain = [&](std::size_t i) {
    const auto [c, d] = of(i);
    return terms_[c].dtype == arg(term, i).dtype && terms_[d].dtype == arg(term, i).dtype;
  };
  const TermId a = term.args[0], b = term.args[1];
  if (is(1, Function::maximum) && plain(1)) {
    const auto [c, d] = of(1);
    if (c == a) return below(a, d);
    if (d == a) return below(a, c);
  }
  if (is(0, Function::minimum) && plain(0)) {
    const auto [c, d] = of(0);
    if (c == b) return below(d, b);
    if (d == b) return below(c, b);
  }
  if (is(1, Function::minimum) && plain(1)) {
    const auto [c, d] = of(1);
    return terms_.call(Function::bitwise_and, DType::b8, {below(a, c), below(a, d)});
  }
  if (is(0, Function::maximum) && plain(0)) {
    const auto [c, d] = of(0);
    return terms_.call(Function::bitwise_and, DType::b8, {below(c, b), below(d, b)});
  }
  return std::nullopt;
}

/// Records that the order of operands decides which zero an extremum returns.
/// Which zero max(0.0, -0.0) returns depends on the order of the operands, and engines differ. A
/// proof that used such a swap lists this as an assumption. A nonzero literal operand excludes a
/// tie of zeros.
void TermSimplifier::order_is_lost(const Term& term) {
  const auto never_zero = [&](TermId id) {
    const Term& arg = terms_[id];
    return arg.kind == Term::Kind::number && arg.number != 0;
  };
  terms_.any_zero_ =
      terms_.any_zero_ ||
      (among(term.function, {Function::maximum, Function::minimum}) && is_float(term.dtype) &&
       !never_zero(term.args[0]) && !never_zero(term.args[1]));
}

/// Orders the operands of a commutative op by id. IEEE addition and multiplication commute exactly,
/// up to the payload of NaN. They do not associate, so only one op is reordered at a time.
void TermSimplifier::commute(Term& term) {
  if (!commutes(term.function) || term.args.size() != 2 || !(term.args[1] < term.args[0])) return;
  std::swap(term.args[0], term.args[1]);
  order_is_lost(term);
}

/// Removes repeated operands of an extremum: it is idempotent.
/// max(max(x, y), x) is max(x, y): if x is NaN, both sides are NaN. For zeros of different signs
/// the sign may differ, which order_is_lost records.
std::optional<TermId> TermSimplifier::taken_again(const Term& term) {
  if (!among(term.function, {Function::maximum, Function::minimum})) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i) {
    const Term& inner = terms_[term.args[i]];
    if (inner.kind != Term::Kind::call || inner.function != term.function ||
        inner.dtype != term.dtype ||
        (inner.args[0] != term.args[1 - i] && inner.args[1] != term.args[1 - i]))
      continue;
    order_is_lost(inner);
    return term.args[i];
  }
  return std::nullopt;
}

/// Returns the other argument if one is this number and the other has the dtype of the term.
/// Without the dtype check, 1.0 * x ⇒ x would skip the rounding of an x wider than the term.
std::optional<TermId> TermSimplifier::operand_with(const Term& term, double value) const {
  for (std::size_t i = 0; i < 2; ++i)
    if (is_number(term.args[i], value) && same_dtype(term, 1 - i)) return term.args[1 - i];
  return std::nullopt;
}

/// Simplifies a negation or an absolute value.
std::optional<TermId> TermSimplifier::simplify_sign(const Term& term) {
  const bool real = is_float(term.dtype);
  const Function op = term.function;
  // -(-x) flips the sign bit of a float twice, and is x for integers modulo 2^k. ~(~x) is x for
  // integers and for b8.
  if (among(op, {Function::neg, Function::bitwise_not})) {
    if (arg(term, 0).kind == Term::Kind::call && arg(term, 0).function == op)
      return arg(term, 0).args[0];
    if (op == Function::neg && real && arg(term, 0).kind == Term::Kind::number)
      return terms_.number(-arg(term, 0).number, term.dtype);
  }
  // ||x|| is |x|. |-x| is |x| for floats; reals/integer_laws.cpp has that law for integers.
  if (op == Function::abs && arg(term, 0).kind == Term::Kind::call &&
      (arg(term, 0).function == Function::abs || (arg(term, 0).function == Function::neg && real)))
    return arg(term, 0).function == Function::abs
               ? term.args[0]
               : terms_.call(Function::abs, term.dtype, arg(term, 0).args);
  if (op == Function::abs && real && arg(term, 0).kind == Term::Kind::number)
    return terms_.number(std::abs(arg(term, 0).number), term.dtype);
  // |x * y| is |x| * |y|: rounding to nearest is symmetric, so magnitudes round alike. The same
  // holds for quotients.
  if (op == Function::abs && real && same_dtype(term, 0) && arg(term, 0).kind == Term::Kind::call &&
      among(arg(term, 0).function, {Function::mul, Function::div})) {
    const Term product = arg(term, 0);
    const auto size_of_arg = [&](std::size_t i) {
      return terms_.call(Function::abs, terms_[product.args[i]].dtype, {product.args[i]});
    };
    if (is_float(terms_[product.args[0]].dtype) && is_float(terms_[product.args[1]].dtype))
      return terms_.call(product.function, term.dtype, {size_of_arg(0), size_of_arg(1)});
  }
  return std::nullopt;
}

/// Simplifies a choice. The signature of `select` requires a b8 mask, so bitwise_not negates it. A
/// literal mask chooses a side, which is still converted to the dtype of the term.
std::optional<TermId> TermSimplifier::simplify_select(const Term& term) {
  if (term.function != Function::select) return std::nullopt;
  if (term.args[1] == term.args[2] && same_dtype(term, 1)) return term.args[1];
  if (arg(term, 0).kind == Term::Kind::number) {
    const std::size_t taken = arg(term, 0).number != 0 ? 1 : 2;
    if (same_dtype(term, taken)) return term.args[taken];
    return terms_.call(Function::cast, term.dtype, {term.args[taken]});
  }
  if (arg(term, 0).kind == Term::Kind::call && arg(term, 0).function == Function::bitwise_not)
    return terms_.call(Function::select, term.dtype,
                       {arg(term, 0).args[0], term.args[2], term.args[1]});
  return std::nullopt;
}

/// Simplifies a maximum or minimum with its neutral number, or of inverted integers.
/// max(x, -inf) is x for every x, and a NaN stays NaN. Inversion reverses the order of integers:
/// max(~x, ~y) is ~min(x, y).
std::optional<TermId> TermSimplifier::simplify_extreme(const Term& term) {
  if (!among(term.function, {Function::maximum, Function::minimum})) return std::nullopt;
  const bool maximum = term.function == Function::maximum;
  if (const auto other = operand_with(term, maximum ? -HUGE_VAL : HUGE_VAL)) return other;
  const auto inverted = [&](std::size_t i) {
    return arg(term, i).kind == Term::Kind::call &&
           arg(term, i).function == Function::bitwise_not && same_dtype(term, i);
  };
  if (inverted(0) && inverted(1)) {
    Term other = term;
    other.function = maximum ? Function::minimum : Function::maximum;
    for (std::size_t i = 0; i < 2; ++i) other.args[i] = arg(term, i).args[0];
    return terms_.call(Function::bitwise_not, term.dtype, {simplified(std::move(other))});
  }
  // f8e4m3 has no infinity: its numbers lie between its bounds.
  if (term.dtype != DType::f8e4m3) return std::nullopt;
  return operand_with(term, maximum ? -448 : 448);
}

/// Simplifies a product or quotient of floats.
std::optional<TermId> TermSimplifier::simplify_product(const Term& term) {
  const Function op = term.function;
  if (!among(op, {Function::mul, Function::div}) || !is_float(term.dtype)) return std::nullopt;
  if (op == Function::mul) {
    if (const auto other = operand_with(term, 1.0)) return other;
    if (term.args[0] == term.args[1] && arg(term, 0).kind == Term::Kind::call &&
        arg(term, 0).function == Function::abs && same_dtype(term, 0))
      return terms_.call(op, term.dtype, {arg(term, 0).args[0], arg(term, 0).args[0]});
  }
  // A sign moves out of a product or a quotient: (-x) * y ⇒ -(x * y). Rounding to nearest treats
  // both signs alike, and 0 * inf is NaN on both sides.
  for (std::size_t i = 0; i < 2; ++i) {
    if (arg(term, i).kind != Term::Kind::call || arg(term, i).function != Function::neg ||
        !is_float(arg(term, i).dtype))
      continue;
    Term positive = term;
    positive.args[i] = arg(term, i).args[0];
    return terms_.call(Function::neg, term.dtype, {simplified(std::move(positive))});
  }
  if (op == Function::div && is_number(term.args[1], 1.0) && same_dtype(term, 0))
    return term.args[0];
  return std::nullopt;
}

/// Simplifies an op on two integers or booleans.
/// There is one zero and no NaN, so x + 0, x * 0, and x == x have laws that floats lack: for
/// floats, x * 0 is NaN at infinity, and x == x is false at NaN. For b8, add is `or` and mul is
/// `and`.
std::optional<TermId> TermSimplifier::simplify_integers(const Term& term) {
  const bool real = is_float(term.dtype);
  const Function op = term.function;
  if (!real && !is_float(arg(term, 0).dtype) && term.args.size() == 2) {
    // Integers and booleans wrap around and have one zero.
    for (std::size_t i = 0; i < 2; ++i) {
      if (!same_dtype(term, 1 - i)) continue;
      if (is_number(term.args[i], 0.0) &&
          among(op, {Function::add, Function::bitwise_or, Function::bitwise_xor}))
        return term.args[1 - i];
      if (is_number(term.args[i], 0.0) && among(op, {Function::mul, Function::bitwise_and}))
        return terms_.number(0, term.dtype);
      if (is_number(term.args[i], 1.0) && op == Function::mul) return term.args[1 - i];
      if (is_number(term.args[i], 1.0) && term.dtype == DType::b8) {
        if (op == Function::bitwise_and) return term.args[1 - i];
        if (op == Function::bitwise_or) return terms_.number(1, term.dtype);
      }
    }
    if (term.args[0] == term.args[1]) {
      if (among(op, {Function::eq, Function::le})) return terms_.number(1, DType::b8);
      if (among(op, {Function::ne, Function::lt})) return terms_.number(0, DType::b8);
    }
  }
  if (op == Function::sub && !real && !is_float(arg(term, 0).dtype)) {
    if (term.args[0] == term.args[1]) return terms_.number(0, term.dtype);
    if (is_number(term.args[1], 0.0) && same_dtype(term, 0)) return term.args[0];
  }
  return std::nullopt;
}

/// Applies rewrites that preserve bits in every dtype.
/// The order of the rules matters for the normal form only, not for soundness: each rule alone
/// preserves the bits.
TermId TermSimplifier::simplified(Term term) {
  if (const auto simple = of_any_dtype(term)) return *simple;
  if (const auto taken = taken_again(term)) return *taken;
  // With placeholder dtypes only laws that hold in every dtype apply. Two equal terms are then
  // equal for each dtype that the placeholders represent.
  if (terms_.any_dtype_) {
    commute(term);
    return terms_.intern(std::move(term));
  }
  const Function op = term.function;
  if (op == Function::cast) return cast(std::move(term));
  // x - y is x + (-y) bit for bit, and the sum commutes. Integers keep `sub`; reals/ treats them as
  // polynomials.
  if (op == Function::sub && is_float(arg(term, 1).dtype)) {
    const TermId negated = terms_.call(Function::neg, arg(term, 1).dtype, {term.args[1]});
    return terms_.call(Function::add, term.dtype, {term.args[0], negated});
  }
  commute(term);
  if (const auto simple = simplify_sign(term)) return *simple;
  if (const auto simple = simplify_select(term)) return *simple;
  if (idempotent(op) && term.args[0] == term.args[1] && same_dtype(term, 0)) return term.args[0];
  if (const auto simple = simplify_extreme(term)) return *simple;
  if (const auto simple = simplify_product(term)) return *simple;
  // -0.0 is the neutral number of IEEE addition; 0.0 is not, since -0.0 + 0.0 is 0.0.
  if (op == Function::add && is_float(term.dtype))
    if (const auto other = operand_with(term, -0.0)) return *other;
  if (const auto simple = simplify_integers(term)) return *simple;
  return terms_.intern(std::move(term));
}

}  // namespace pw::proof
