// Hash-consed terms with local rewriting on construction. Each rewrite preserves all bits in IEEE
// arithmetic: commutation of one operation, casts through a wider dtype, idempotent extrema,
// saturation followed by a cast. Rewrites that reassociate or distribute are absent; they belong to
// reals/. Invariant: equal ids imply equal bits for all inputs, any NaN being equal to any
// other. The rules of an extremum of zeros are recorded in any_zero(), because the chosen zero
// depends on the order of the operands.
#include "proof/terms.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "proof/index_levels.hpp"

namespace pw::proof {
namespace {

bool commutes(Function f) {
  return among(f,
               {Function::add, Function::mul, Function::maximum, Function::minimum, Function::eq,
                Function::ne, Function::bitwise_and, Function::bitwise_or, Function::bitwise_xor});
}
/// Returns true for a power of two of which every float dtype holds the inverse.
bool has_exact_inverse(double x) {
  int exponent = 0;
  return std::isfinite(x) && std::abs(std::frexp(x, &exponent)) == 0.5 &&
         std::abs(exponent - 1) <= 6;
}
bool idempotent(Function f) {
  return among(f,
               {Function::maximum, Function::minimum, Function::bitwise_and, Function::bitwise_or});
}

/// Width of the mantissa, including the hidden bit, and of the exponent.
struct FloatShape {
  int mantissa, exponent;
};
FloatShape shape_of_float(DType dtype) {
  switch (dtype) {
    case DType::f64: return {53, 11};
    case DType::f32: return {24, 8};
    case DType::bf16: return {8, 8};
    case DType::f16: return {11, 5};
    case DType::f8e4m3: return {4, 4};
    case DType::f8e5m2: return {3, 5};
    case DType::b8:
    case DType::i8:
    case DType::i32:
    case DType::i64:
    case DType::u8: break;
  }
  return {0, 0};
}
int integer_bits(DType dtype) {
  switch (dtype) {
    case DType::b8: return 1;
    case DType::u8: return 8;
    case DType::i8: return 7;
    case DType::i32: return 31;
    case DType::i64: return 63;
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64: break;
  }
  return 0;
}

}  // namespace

bool holds_all(DType wide, DType narrow) {
  if (wide == narrow) return true;
  if (is_float(wide) && is_float(narrow)) {
    const FloatShape w = shape_of_float(wide), n = shape_of_float(narrow);
    return w.mantissa >= n.mantissa && w.exponent >= n.exponent;
  }
  if (is_float(narrow)) return false;
  if (narrow == DType::b8) return true;
  if (is_float(wide))
    return shape_of_float(wide).mantissa >= integer_bits(narrow) && wide != DType::f8e4m3 &&
           wide != DType::f8e5m2;
  if (wide == DType::b8 || wide == DType::u8) return false;
  return integer_bits(wide) >= integer_bits(narrow);
}

int mantissa_bits(DType dtype) { return shape_of_float(dtype).mantissa; }

double saturation(DType dtype) {
  return dtype == DType::f8e4m3 ? 448.0 : dtype == DType::f8e5m2 ? 57344.0 : 0.0;
}

Terms::Key Terms::key_of(const Term& term) {
  return {
      term.kind, term.dtype, term.function, term.level, std::bit_cast<std::uint64_t>(term.number),
      term.name, term.args,  term.at};
}

TermId Terms::intern(Term term) {
  const auto [found, fresh] = ids_.emplace(key_of(term), TermId(terms_.size()));
  if (fresh) terms_.push_back(std::move(term));
  return found->second;
}

TermId Terms::number(double value, DType dtype) {
  Term term;
  term.kind = Term::Kind::number;
  term.dtype = dtype;
  term.number = value;
  return intern(std::move(term));
}

TermId Terms::index(Ix at, DType dtype) {
  if (const auto value = integers_.number(at)) return number(static_cast<double>(*value), dtype);
  std::set<std::uint32_t> held;  // the integer that a term is, is that term
  integers_.collect_values(at, held);
  if (held.size() == 1 && integers_.value(*held.begin()) == at)
    if (const TermId term(std::size_t{*held.begin()}); terms_[term.index].dtype == dtype)
      return term;
  Term term;
  term.kind = Term::Kind::index;
  term.dtype = dtype;
  term.at = {at};
  return intern(std::move(term));
}

TermId Terms::call(Function function, DType dtype, std::vector<TermId> args) {
  Term term;
  term.kind = Term::Kind::call;
  term.dtype = dtype;
  term.function = function;
  term.args = std::move(args);
  return make(std::move(term));
}

TermId Terms::make(Term term) {
  // The product of two numbers is that of the same two in the other order, bit for bit.
  if (term.kind == Term::Kind::reduce && term.function == Function::dot && term.args.size() == 2 &&
      term.args[1] < term.args[0])
    std::swap(term.args[0], term.args[1]);
  if (term.kind != Term::Kind::call) return intern(std::move(term));
  Key key = key_of(term);
  const auto known = simplified_.find(key);
  if (known != simplified_.end()) return known->second;
  const TermId out = simplified(std::move(term));
  simplified_.emplace(std::move(key), out);
  return out;
}

bool Terms::is_number(TermId id, double value) const {
  const Term& term = terms_[id.index];
  return term.kind == Term::Kind::number && term.number == value &&
         std::signbit(term.number) == std::signbit(value);
}

TermId Terms::cast(Term term) {
  const TermId x = term.args[0];
  const Term inner = terms_[x.index];
  if (inner.dtype == term.dtype) return x;
  if (inner.kind == Term::Kind::call && inner.function == Function::cast) {
    const Term innermost = terms_[inner.args[0].index];
    // If the intermediate dtype represents the value, the cast skips it.
    if (holds_all(inner.dtype, innermost.dtype)) {
      Term direct = term;
      direct.args = inner.args;
      return cast(std::move(direct));
    }
  }
  if (inner.kind == Term::Kind::number && is_float(term.dtype) && is_float(inner.dtype) &&
      holds_all(term.dtype, DType::f32) &&
      static_cast<double>(static_cast<float>(inner.number)) == inner.number)
    return number(inner.number, term.dtype);
  // Only for f8e4m3, which saturates at the same bounds; f8e5m2 keeps infinity, which a bound does
  // not.
  const double most = term.dtype == DType::f8e4m3 ? saturation(term.dtype) : 0;
  if (most > 0 && inner.kind == Term::Kind::call && is_float(inner.dtype) &&
      among(inner.function, {Function::minimum, Function::maximum})) {
    for (std::size_t i = 0; i < 2; ++i) {
      const double bound = inner.function == Function::minimum ? most : -most;
      if (!is_number(inner.args[i], bound)) continue;
      const Term rest = terms_[inner.args[1 - i].index];
      // An integer below the bounds is exact in 11 bits; larger values saturate.
      const bool whole = !is_float(rest.dtype) && shape_of_float(inner.dtype).mantissa >= 11;
      if (rest.dtype != inner.dtype && !whole) continue;
      Term direct = term;
      direct.args = {inner.args[1 - i]};
      return cast(std::move(direct));
    }
  }
  return intern(std::move(term));
}

/// Applies bit-preserving rewrites that depend on dtypes only through equality.
std::optional<TermId> Terms::of_any_dtype(const Term& term) {
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
  if (op == Function::mul && term.args[0] == term.args[1] && is(0, Function::abs) &&
      same_dtype(term, 0)) {
    const TermId x = arg(term, 0).args[0];
    if (terms_[x.index].dtype == term.dtype) return call(op, term.dtype, {x, x});
  }
  // A remainder is smaller than the divisor and has the dividend's sign.
  if (op == Function::fmod && is(0, Function::fmod) && arg(term, 0).args[1] == term.args[1] &&
      same_dtype(term, 0) && arg(term, 0).dtype == terms_[arg(term, 0).args[0].index].dtype)
    return term.args[0];
  if (op == Function::gt) return call(Function::lt, term.dtype, {term.args[1], term.args[0]});
  if (op == Function::ge) return call(Function::le, term.dtype, {term.args[1], term.args[0]});
  if (op != Function::lt) return std::nullopt;
  // Comparisons with NaN are false, and an extreme of NaN is NaN.
  if (term.args[0] == term.args[1]) return number(0, DType::b8);
  const auto below = [&](TermId a, TermId b) { return call(Function::lt, term.dtype, {a, b}); };
  const auto of = [&](std::size_t i) {
    return std::pair(arg(term, i).args[0], arg(term, i).args[1]);
  };
  const auto plain = [&](std::size_t i) {
    const auto [c, d] = of(i);
    return terms_[c.index].dtype == arg(term, i).dtype &&
           terms_[d.index].dtype == arg(term, i).dtype;
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
    return call(Function::bitwise_and, DType::b8, {below(a, c), below(a, d)});
  }
  if (is(0, Function::maximum) && plain(0)) {
    const auto [c, d] = of(0);
    return call(Function::bitwise_and, DType::b8, {below(c, b), below(d, b)});
  }
  return std::nullopt;
}

/// Records that the order of operands decides which zero an extremum returns.
void Terms::order_is_lost(const Term& term) {
  const auto never_zero = [&](TermId id) {
    const Term& arg = terms_[id.index];
    return arg.kind == Term::Kind::number && arg.number != 0;
  };
  any_zero_ =
      any_zero_ || (among(term.function, {Function::maximum, Function::minimum}) &&
                    is_float(term.dtype) && !never_zero(term.args[0]) && !never_zero(term.args[1]));
}

void Terms::commute(Term& term) {
  if (!commutes(term.function) || term.args.size() != 2 || !(term.args[1] < term.args[0])) return;
  std::swap(term.args[0], term.args[1]);
  order_is_lost(term);
}

/// Removes repeated operands of an extremum: it is idempotent.
std::optional<TermId> Terms::taken_again(const Term& term) {
  if (!among(term.function, {Function::maximum, Function::minimum})) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i) {
    const Term& inner = terms_[term.args[i].index];
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
std::optional<TermId> Terms::operand_with(const Term& term, double value) const {
  for (std::size_t i = 0; i < 2; ++i)
    if (is_number(term.args[i], value) && same_dtype(term, 1 - i)) return term.args[1 - i];
  return std::nullopt;
}

/// Simplifies a negation or an absolute value.
std::optional<TermId> Terms::simplify_sign(const Term& term) {
  const bool real = is_float(term.dtype);
  const Function op = term.function;
  if (among(op, {Function::neg, Function::bitwise_not})) {
    if (arg(term, 0).kind == Term::Kind::call && arg(term, 0).function == op)
      return arg(term, 0).args[0];
    if (op == Function::neg && real && arg(term, 0).kind == Term::Kind::number)
      return number(-arg(term, 0).number, term.dtype);
  }
  if (op == Function::abs && arg(term, 0).kind == Term::Kind::call &&
      (arg(term, 0).function == Function::abs || (arg(term, 0).function == Function::neg && real)))
    return arg(term, 0).function == Function::abs
               ? term.args[0]
               : call(Function::abs, term.dtype, arg(term, 0).args);
  if (op == Function::abs && real && arg(term, 0).kind == Term::Kind::number)
    return number(std::abs(arg(term, 0).number), term.dtype);
  if (op == Function::abs && real && same_dtype(term, 0) && arg(term, 0).kind == Term::Kind::call &&
      among(arg(term, 0).function, {Function::mul, Function::div})) {
    const Term product = arg(term, 0);
    const auto size_of_arg = [&](std::size_t i) {
      return call(Function::abs, terms_[product.args[i].index].dtype, {product.args[i]});
    };
    if (is_float(terms_[product.args[0].index].dtype) &&
        is_float(terms_[product.args[1].index].dtype))
      return call(product.function, term.dtype, {size_of_arg(0), size_of_arg(1)});
  }
  return std::nullopt;
}

std::optional<TermId> Terms::simplify_select(const Term& term) {
  if (term.function != Function::select) return std::nullopt;
  if (term.args[1] == term.args[2] && same_dtype(term, 1)) return term.args[1];
  if (arg(term, 0).kind == Term::Kind::number) {
    const std::size_t taken = arg(term, 0).number != 0 ? 1 : 2;
    if (same_dtype(term, taken)) return term.args[taken];
    return call(Function::cast, term.dtype, {term.args[taken]});
  }
  if (arg(term, 0).kind == Term::Kind::call && arg(term, 0).function == Function::bitwise_not)
    return call(Function::select, term.dtype, {arg(term, 0).args[0], term.args[2], term.args[1]});
  return std::nullopt;
}

/// Simplifies a maximum or minimum with its neutral number.
std::optional<TermId> Terms::simplify_extreme(const Term& term) const {
  if (!among(term.function, {Function::maximum, Function::minimum})) return std::nullopt;
  const bool maximum = term.function == Function::maximum;
  if (const auto other = operand_with(term, maximum ? -HUGE_VAL : HUGE_VAL)) return other;
  // f8e4m3 has no infinity: its numbers lie between its bounds.
  if (term.dtype != DType::f8e4m3) return std::nullopt;
  return operand_with(term, maximum ? -448 : 448);
}

/// Simplifies a product or quotient of floats.
std::optional<TermId> Terms::simplify_product(const Term& term) {
  const Function op = term.function;
  if (!among(op, {Function::mul, Function::div}) || !is_float(term.dtype)) return std::nullopt;
  if (op == Function::mul) {
    if (const auto other = operand_with(term, 1.0)) return other;
    if (term.args[0] == term.args[1] && arg(term, 0).kind == Term::Kind::call &&
        arg(term, 0).function == Function::abs && same_dtype(term, 0))
      return call(op, term.dtype, {arg(term, 0).args[0], arg(term, 0).args[0]});
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (arg(term, i).kind != Term::Kind::call || arg(term, i).function != Function::neg ||
        !is_float(arg(term, i).dtype))
      continue;
    Term positive = term;
    positive.args[i] = arg(term, i).args[0];
    return call(Function::neg, term.dtype, {simplified(std::move(positive))});
  }
  if (op == Function::div && is_number(term.args[1], 1.0) && same_dtype(term, 0))
    return term.args[0];
  return std::nullopt;
}

/// Simplifies an op on two integers or booleans.
std::optional<TermId> Terms::simplify_integers(const Term& term) {
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
        return number(0, term.dtype);
      if (is_number(term.args[i], 1.0) && op == Function::mul) return term.args[1 - i];
      if (is_number(term.args[i], 1.0) && term.dtype == DType::b8) {
        if (op == Function::bitwise_and) return term.args[1 - i];
        if (op == Function::bitwise_or) return number(1, term.dtype);
      }
    }
    if (term.args[0] == term.args[1]) {
      if (among(op, {Function::eq, Function::le})) return number(1, DType::b8);
      if (among(op, {Function::ne, Function::lt})) return number(0, DType::b8);
    }
  }
  if (op == Function::sub && !real && !is_float(arg(term, 0).dtype)) {
    if (term.args[0] == term.args[1]) return number(0, term.dtype);
    if (is_number(term.args[1], 0.0) && same_dtype(term, 0)) return term.args[0];
  }
  return std::nullopt;
}

/// Applies rewrites that preserve bits in every dtype.
TermId Terms::simplified(Term term) {
  if (const auto simple = of_any_dtype(term)) return *simple;
  if (const auto taken = taken_again(term)) return *taken;
  if (any_dtype_) {
    commute(term);
    return intern(std::move(term));
  }
  const Function op = term.function;
  if (op == Function::cast) return cast(std::move(term));
  if (op == Function::sub && is_float(arg(term, 1).dtype)) {
    const TermId negated = call(Function::neg, arg(term, 1).dtype, {term.args[1]});
    return call(Function::add, term.dtype, {term.args[0], negated});
  }
  commute(term);
  if (const auto simple = simplify_sign(term)) return *simple;
  if (const auto simple = simplify_select(term)) return *simple;
  if (idempotent(op) && term.args[0] == term.args[1] && same_dtype(term, 0)) return term.args[0];
  if (const auto simple = simplify_extreme(term)) return *simple;
  if (const auto simple = simplify_product(term)) return *simple;
  if (op == Function::add && is_float(term.dtype))
    if (const auto other = operand_with(term, -0.0)) return *other;
  if (const auto simple = simplify_integers(term)) return *simple;
  return intern(std::move(term));
}

TermId Terms::with_exact_products(TermId id) {
  const auto known = exact_products_.find(id);
  if (known != exact_products_.end()) return known->second;
  Term term = terms_[id.index];
  for (TermId& arg : term.args) arg = with_exact_products(arg);
  TermId out;
  const auto dtype_of = [&](std::size_t i) { return terms_[term.args[i].index].dtype; };
  const bool binary = term.kind == Term::Kind::call && is_float(term.dtype) &&
                      term.args.size() == 2 && dtype_of(0) == term.dtype;
  if (binary && term.function == Function::add && term.args[0] == term.args[1]) {
    out = call(Function::mul, term.dtype, {term.args[0], number(2, term.dtype)});
  } else if (const Term& by = terms_[term.args.empty() ? id.index : term.args.back().index];
             binary && term.function == Function::div && by.kind == Term::Kind::number &&
             has_exact_inverse(by.number)) {
    const TermId inverse = number(1 / by.number, by.dtype);
    out = call(Function::mul, term.dtype, {term.args[0], inverse});
  } else {
    out = make(std::move(term));
  }
  exact_products_.emplace(id, out);
  return out;
}

bool Terms::mentions(TermId id, std::uint32_t level) const {
  bool found = false;
  walk(id, [&](TermId at, std::vector<TermId>& next) {
    const Term& term = terms_[at.index];
    next.insert(next.end(), term.args.begin(), term.args.end());
    for (Ix ix : term.at) {
      found = found || integers_.mentions(ix, level);
      std::set<std::uint32_t> values;
      integers_.collect_values(ix, values);
      for (std::uint32_t value : values) next.emplace_back(std::size_t{value});
    }
    if (found) next.clear();
  });
  return found;
}

bool Terms::pointwise(TermId id) const {
  const auto known = pointwise_.find(id);
  if (known != pointwise_.end()) return known->second;
  bool all = true;
  walk(id, [&](TermId at, std::vector<TermId>& next) {
    const Term& term = terms_[at.index];
    const bool leaf = term.kind == Term::Kind::read || term.kind == Term::Kind::number;
    all = all && (leaf || term.kind == Term::Kind::call);
    if (all && !leaf) next.insert(next.end(), term.args.begin(), term.args.end());
  });
  pointwise_.emplace(id, all);
  return all;
}

std::string Terms::print(TermId id, int depth) const {
  const Term& term = terms_[id.index];
  constexpr std::size_t kMostArguments = 8;
  if (depth == 0) return "…";
  std::string args, at;
  for (std::size_t i = 0; i < term.args.size(); ++i) {
    const bool more = i >= kMostArguments;
    args += (args.empty() ? "" : ", ") + (more ? "…" : print(term.args[i], depth - 1));
    if (more) break;
  }
  for (Ix ix : term.at) at += (at.empty() ? "" : ", ") + integers_.print(ix);
  switch (term.kind) {
    case Term::Kind::read: return fmt::format("{}[{}]", term.name, at);
    case Term::Kind::number: return fmt::format("{}", term.number);
    case Term::Kind::index: return at;
    case Term::Kind::call:
      if (term.function == Function::cast) return fmt::format("{}({})", name(term.dtype), args);
      return fmt::format("{}({})", name(term.function), args);
    case Term::Kind::reduce:
      return fmt::format("{}({} < {}: {})", name(term.function), index_name(term.level), at, args);
    case Term::Kind::opaque: return fmt::format("{}({})[{}]", term.name, args, at);
    case Term::Kind::lambda: return fmt::format("[{}: {}]", at, args);
  }
  return "?";
}

}  // namespace pw::proof
