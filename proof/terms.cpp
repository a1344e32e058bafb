// Hash-consed terms. Invariant: equal ids imply equal bits for all inputs, any NaN being equal to
// any other.
#include "proof/terms.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "proof/index_levels.hpp"
#include "proof/term_simplifier.hpp"

namespace pw::proof {
namespace {

/// Returns true for a power of two of which every float dtype holds the inverse.
bool has_exact_inverse(double x) {
  int exponent = 0;
  return std::isfinite(x) && std::abs(std::frexp(x, &exponent)) == 0.5 &&
         std::abs(exponent - 1) <= 6;
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
  constexpr std::int64_t kExact = std::int64_t{1} << 53;  // what `number` represents
  if (const auto value = integers_.number(at); value && *value <= kExact && *value >= -kExact)
    return number(static_cast<double>(*value), dtype);
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
  const TermId out = TermSimplifier(*this).simplified(std::move(term));
  simplified_.emplace(std::move(key), out);
  return out;
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
