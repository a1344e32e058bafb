// Symbolic integer arithmetic over tensor extents. Guards and shape inference compare extents whose
// symbols are known only by ranges and divisors, and they must never accept a false equality.
//
//  * Normal form: a dim is a sorted sum of monomials over atoms. Atoms are symbols, and quotients,
//    remainders and extremes that do not simplify. Polynomials are hash-consed (interned), so that
//    equality of polynomials is equality of ids.
//  * Division: by a monomial term by term, by a polynomial with long division in graded
//    lexicographic order. The part that does not divide becomes a quotient or remainder atom.
//  * Order: a < b is decided by interval arithmetic on a - b under the facts, in 128 bits with
//    saturation.
//  * Equality: decided by the interval, by the divisors of the terms (the gcd test for linear
//    Diophantine equations), and by writing a symbol that is a multiple of m as m times another.
//
// Invariant: terms of a polynomial are distinct and have coefficients other than 0. Coefficients
// and powers are checked: an overflow gives an invalid id, never a wrong number. The procedure is
// sound but incomplete: what it cannot decide is unknown.
//
// Cost: sums and products are sorted merges, O(t log t) for t terms. Limits bound the
// terms of a polynomial, the size of an atom and the depth of the interval analysis.
#include "graph/dim.hpp"

#include <algorithm>
#include <numeric>

#include "base/division.hpp"
#include "graph/dims/dim_bounds.hpp"

namespace pw {
namespace {

constexpr std::size_t kMaxArguments = 16;  // of one maximum

}  // namespace

Truth negate(Truth t) {
  return t == Truth::yes ? Truth::no : t == Truth::no ? Truth::yes : Truth::unknown;
}
Truth both(Truth a, Truth b) { return std::min(a, b); }
Truth either(Truth a, Truth b) { return std::max(a, b); }

const SymbolFact* Facts::find(std::string_view name) const {
  auto it = symbols.find(name);
  return it == symbols.end() ? nullptr : &it->second;
}

std::string Facts::tokens() const {
  for (const auto& [name, fact] : symbols)
    if (fact.role == "tokens") return name;
  return {};
}

Dims::Dims(Strings& strings) : Polynomials(strings) {}

Dims::Dims(const Dims& other, Strings& strings)
    : Polynomials(other, strings), extremes_(other.extremes_) {}

namespace {

/// Returns `term / by` if that is a monomial with an integer coefficient.
template <class Monomial>
std::optional<std::pair<Monomial, std::int64_t>> quotient(
    const std::pair<Monomial, std::int64_t>& term, const std::pair<Monomial, std::int64_t>& by) {
  if (term.second == INT64_MIN && by.second == -1) return std::nullopt;  // 2^63 does not fit
  if (term.second % by.second != 0) return std::nullopt;
  auto powers = std::map(term.first.begin(), term.first.end());
  for (const auto& [x, p] : by.first) {
    auto it = powers.find(x);
    if (it == powers.end() || it->second < p) return std::nullopt;
    it->second -= p;
  }
  Monomial m;
  for (const auto& [x, p] : powers)
    if (p > 0) m.push_back({x, p});
  return std::pair{m, term.second / by.second};
}

/// Returns the largest term in graded lexicographic order, which multiplication preserves.
template <class Polynomial>
const auto& leading(const Polynomial& p) {
  auto degree = [](const auto& m) {
    return std::accumulate(m.begin(), m.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const auto& x) { return sum + x.second; });
  };
  auto less = [&](const auto& a, const auto& b) {
    if (degree(a.first) != degree(b.first)) return degree(a.first) < degree(b.first);
    for (std::size_t i = 0; i < a.first.size() && i < b.first.size(); ++i) {
      if (a.first[i].first != b.first[i].first)
        return a.first[i].first > b.first[i].first;  // lacks the smaller atom
      if (a.first[i].second != b.first[i].second) return a.first[i].second < b.first[i].second;
    }
    return false;
  };
  return *std::max_element(p.begin(), p.end(), less);
}

/// Returns true if no term but the constant has a positive coefficient.
template <class Polynomial>
bool falls(const Polynomial& p) {
  const auto has_positive = [](const auto& term) { return !term.first.empty() && term.second > 0; };
  return !p.empty() && std::none_of(p.begin(), p.end(), has_positive);
}

}  // namespace

/// Splits a = q·b + r with q a polynomial and r the terms that b does not divide; returns (q,
/// whether r is zero).
std::optional<std::pair<DimId, bool>> Dims::exact_quotient(DimId a, DimId b) {
  if (terms(b).size() == 1) {
    std::map<Monomial, std::int64_t> q;
    bool exact = true;
    for (const auto& term : terms(a)) {
      if (auto part = quotient<Monomial>(term, terms(b).front()))
        q[part->first] += part->second;
      else
        exact = false;
    }
    return std::pair{intern_checked(std::move(q)), exact};
  }
  DimId rest = a, q = constant(0);
  for (int round = 0; round < 32 && !terms(rest).empty();
       ++round) {  // long division by the leading term
    auto part = quotient<Monomial>(leading(terms(rest)), leading(terms(b)));
    if (!part) return std::nullopt;
    DimId piece = intern({*part});
    q = add(q, piece);
    rest = sub(rest, mul(piece, b));
    if (!q || !rest) return std::nullopt;
  }
  if (!terms(rest).empty()) return std::nullopt;
  return std::pair{q, true};
}

/// Applies an operation with all simplifications, for dims that are built again from their parts.
DimId Dims::apply(Atom::Kind kind, DimId a, DimId b) {
  switch (kind) {
    case Atom::Kind::quotient: return div(a, b);
    case Atom::Kind::remainder: return mod(a, b);
    case Atom::Kind::maximum:
    case Atom::Kind::minimum: return extreme(kind, a, b);
    case Atom::Kind::symbol: break;
  }
  return {};
}

/// Returns a chain of the arguments in the order of their text, constant first: max(a, max(b, 1))
/// and max(1, max(b, a)) have one id.
DimId Dims::extreme(Atom::Kind kind, DimId a, DimId b) {
  if (!a || !b) return {};
  extremes_ = true;
  std::map<std::string, DimId> parts;
  std::optional<std::int64_t> known;
  std::vector<DimId> work = {a, b};
  while (!work.empty()) {
    const DimId id = work.back();
    work.pop_back();
    if (const auto v = value(id)) {
      known = !known                        ? *v
              : kind == Atom::Kind::maximum ? std::max(*known, *v)
                                            : std::min(*known, *v);
    } else if (const Atom* inner = only_atom(id); inner && inner->kind == kind) {
      work.push_back(inner->a);
      work.push_back(inner->b);
    } else {
      parts.emplace(print(id), id);
    }
    if (parts.size() > kMaxArguments) return {};
  }
  std::vector<DimId> chain;
  if (known) chain.push_back(constant(*known));
  for (const auto& [text, id] : parts) chain.push_back(id);
  DimId out = chain.back();
  for (std::size_t i = chain.size() - 1; i-- > 0;) out = of_atom(kind, chain[i], out);
  return out;
}

/// Rewrites (x / m + r) / c as (x + r*m) / (m*c) for positive constants m and c; invalid if a does
/// not have this form.
DimId Dims::nested_quotient(DimId a, DimId b) {
  const std::optional<std::int64_t> c = value(b);
  if (!c || *c <= 0) return {};
  std::optional<Atom> found;
  for (const auto& [m, coefficient] : terms(a)) {
    for (const auto& [x, power] : m) {
      if (atom(x).kind != Atom::Kind::quotient) continue;
      if (found || power != 1 || m.size() != 1 || coefficient != 1) return {};
      found = atom(x);
    }
  }
  if (!found || value(found->b).value_or(0) <= 0) return {};
  const DimId rest = sub(a, of_atom(found->kind, found->a, found->b));
  return div(add(found->a, mul(rest, found->b)), mul(found->b, b));
}

/// Divides in this order: constants directly; the part that divides exactly; nested quotients
/// flattened; an atom for the rest. Floor division satisfies (q·b + r) / b = q + r / b, so
/// splitting off the exact part is sound.
DimId Dims::div(DimId a, DimId b) {
  if (!a || !b || terms(b).empty()) return {};
  if (auto va = value(a), vb = value(b); va && vb) {
    if (*va == INT64_MIN && *vb == -1) return {};
    return constant(floor_div(*va, *vb));
  }
  if (const auto vb = value(b); vb && *vb < 0 && *vb != INT64_MIN)  // x / -4 is -x / 4
    return div(mul(a, constant(-1)), constant(-*vb));
  DimId whole = constant(0), rest = a;
  if (auto q = exact_quotient(a, b)) {
    if (!q->first) return {};
    if (q->second) return q->first;
    whole = q->first;
    rest = sub(a, mul(whole, b));
    if (!rest) return {};
    if (value(rest) && value(b)) return add(whole, constant(floor_div(*value(rest), *value(b))));
  }
  if (const DimId flat = nested_quotient(rest, b)) return add(whole, flat);
  return add(whole, of_atom(Atom::Kind::quotient, rest, b));
}

DimId Dims::without_remainders(DimId id, std::int64_t by) {
  const auto opens = [&](const std::pair<Monomial, std::int64_t>& term) {
    const Monomial& m = term.first;
    if (m.size() != 1 || m.front().second != 1) return false;
    const Atom& inner = atom(m.front().first);
    if (inner.kind != Atom::Kind::remainder) return false;
    const std::int64_t divisor = value(inner.b).value_or(0);
    return divisor != 0 && divisor % by == 0;
  };
  const Polynomial& p = terms(id);
  if (std::none_of(p.begin(), p.end(), opens)) return {};
  Terms out;
  for (const auto& term : p) {
    const bool open = opens(term);
    const Polynomial& added = open ? terms(atom(term.first.front().first).a) : Polynomial{term};
    if (!add_product(out, added, {}, open ? term.second : 1)) return {};
  }
  return intern_checked(std::move(out));
}

/// Reduces the part that b divides to 0, and removes inner remainders by multiples of b: (x %
/// (c·b)) % b is x % b. The remainder of a falling dim is written by the quotient, so that equal
/// sizes have one form.
DimId Dims::mod(DimId a, DimId b) {
  if (!a || !b || terms(b).empty()) return {};
  DimId rest = a;
  if (auto q = exact_quotient(a, b)) {
    if (!q->first) return {};
    if (q->second) return constant(0);
    rest = sub(a, mul(q->first, b));
    if (!rest) return {};
  }
  if (auto va = value(rest), vb = value(b); va && vb) {
    if (*vb == -1) return constant(0);
    return constant(*va - *vb * floor_div(*va, *vb));
  }
  const std::int64_t by = value(b).value_or(0);
  if (const DimId flat = by > 1 ? without_remainders(rest, by) : DimId()) return mod(flat, b);
  if (by > 1 && falls(terms(rest))) {  // -x % b is the distance from x up to a multiple of b
    const DimId x = mul(rest, constant(-1));
    const DimId whole = mul(div(add(x, constant(by - 1)), b), b);
    if (const DimId fill = sub(whole, x)) return fill;
  }
  return of_atom(Atom::Kind::remainder, rest, b);
}

namespace {

/// Builds a dim again from its terms, so that quotients and extremes simplify. `factor_of` returns
/// the new value of an atom. `terms` is a copy, because interning may move the table.
template <class FactorOf>
DimId with_factors(Dims& dims, Polynomials::Polynomial terms, const FactorOf& factor_of) {
  DimId sum = dims.constant(0);
  for (const auto& [m, c] : terms) {
    DimId term = dims.constant(c);
    for (const auto& [x, power] : m) {
      const DimId factor = factor_of(x);
      for (std::uint32_t i = 0; i < power; ++i) term = dims.mul(term, factor);
    }
    sum = dims.add(sum, term);
  }
  return sum;
}

}  // namespace

DimId Dims::substitute(DimId id, const std::map<std::string, DimId, std::less<>>& with) {
  if (!id) return {};
  return with_factors(*this, terms(id), [&](AtomId x) {
    const Atom a = atom(x);
    if (a.kind == Atom::Kind::symbol) {
      const auto found = with.find(name(a));
      return found == with.end() ? symbol(name(a)) : found->second;
    }
    const DimId l = substitute(a.a, with), r = substitute(a.b, with);
    return apply(a.kind, l, r);
  });
}

std::optional<DimSolution> Dims::solve(DimId zero) {
  if (!zero) return std::nullopt;
  const Polynomial p = terms(zero);  // copied: interning may move the table
  std::map<AtomId, std::size_t> uses;
  for (const auto& [m, c] : p)
    for (const auto& [x, power] : m) ++uses[x];
  std::optional<DimSolution> best;
  for (const auto& [m, c] : p) {
    const bool alone = m.size() == 1 && m.front().second == 1 && (c == 1 || c == -1);
    if (!alone || uses[m.front().first] != 1 || atom(m.front().first).kind == Atom::Kind::symbol)
      continue;
    const DimId operation = intern({{m, 1}});
    const DimId value = c == 1 ? sub(operation, zero) : add(operation, zero);
    if (!value || (best && print(operation).size() <= print(best->operation).size())) continue;
    best = DimSolution{operation, value};
  }
  return best;
}

DimId Dims::replace(DimId id, const std::map<DimId, DimId>& operations) {
  if (!id || operations.empty()) return id;
  return with_factors(*this, terms(id), [&](AtomId x) {
    const DimId operation = intern({{Monomial{{x, 1}}, 1}});
    const auto found = operations.find(operation);
    return found == operations.end() ? operation : found->second;
  });
}

std::optional<std::int64_t> Dims::evaluate(
    DimId id, const std::map<std::string, std::int64_t, std::less<>>& with) const {
  if (!id) return std::nullopt;
  std::int64_t sum = 0;
  for (const auto& [m, c] : terms(id)) {
    std::int64_t term = c;
    for (const auto& [x, power] : m) {
      const Atom& a = atom(x);
      std::int64_t factor = 0;
      if (a.kind == Atom::Kind::symbol) {
        auto it = with.find(name(a));
        if (it == with.end()) return std::nullopt;
        factor = it->second;
      } else {
        auto l = evaluate(a.a, with), r = evaluate(a.b, with);
        if (!l || !r) return std::nullopt;
        if (a.kind == Atom::Kind::maximum || a.kind == Atom::Kind::minimum) {
          factor = a.kind == Atom::Kind::maximum ? std::max(*l, *r) : std::min(*l, *r);
        } else {
          if (*r == 0 || (*l == INT64_MIN && *r == -1)) return std::nullopt;
          std::int64_t q = floor_div(*l, *r);
          factor = a.kind == Atom::Kind::quotient ? q : *l - *r * q;
        }
      }
      for (std::uint32_t i = 0; i < power; ++i)
        if (__builtin_mul_overflow(term, factor, &term)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, term, &sum)) return std::nullopt;
  }
  return sum;
}

/// Evaluates each maximum and minimum whose order the facts decide, from the inside out.
DimId Dims::decided(DimId id, const Facts& facts) {
  if (!id) return {};
  return with_factors(*this, terms(id), [&](AtomId x) {
    const Atom a = atom(x);
    if (a.kind == Atom::Kind::symbol) return symbol(name(a));
    const DimId l = decided(a.a, facts), r = decided(a.b, facts);
    const bool largest = a.kind == Atom::Kind::maximum;
    if (largest || a.kind == Atom::Kind::minimum) {
      const Bounds d = bounds(sub(l, r), facts);
      if (d.max && *d.max <= 0) return largest ? r : l;
      if (d.min && *d.min >= 0) return largest ? l : r;
    }
    return apply(a.kind, l, r);
  });
}

/// Substitutes 0 and 1 for the symbol, which gives the candidate line, and compares the line with
/// the dim. A dim that is not linear in the symbol differs from its candidate.
std::optional<DimLine> Dims::rising(DimId id, std::string_view symbol, const Facts& facts) {
  const std::string name(symbol);
  const DimId rest = substitute(id, {{name, constant(0)}});
  const DimId factor = sub(substitute(id, {{name, constant(1)}}), rest);
  if (!factor || bounds(factor, facts).min.value_or(0) < 1) return std::nullopt;
  if (add(mul(factor, this->symbol(name)), rest) != id) return std::nullopt;
  return DimLine{factor, rest};
}

Bounds Dims::bounds(DimId id, const Facts& facts) const { return DimBounds(*this, facts).of(id); }

std::int64_t Dims::known_divisor(DimId id, const Facts& facts) const {
  return DimBounds(*this, facts).divisor(id);
}

/// Decides an order by the bounds of the difference. Decides an equality by its bounds, then by
/// divisors, and at last by writing symbols as multiples of others. The order of the steps is that
/// of their cost.
Truth Dims::prove(Compare op, DimId a, DimId b, const Facts& facts) {
  switch (op) {
    case Compare::ne: return negate(prove(Compare::eq, a, b, facts));
    case Compare::gt: return prove(Compare::lt, b, a, facts);
    case Compare::ge: return negate(prove(Compare::lt, a, b, facts));
    case Compare::le: return negate(prove(Compare::lt, b, a, facts));
    case Compare::eq:
    case Compare::lt: break;
  }
  DimId difference = sub(a, b);
  if (extremes_) difference = decided(difference, facts);
  if (!difference) return Truth::unknown;
  Bounds d = bounds(difference, facts);
  if (op == Compare::lt) {
    if (d.max && *d.max < 0) return Truth::yes;
    if (d.min && *d.min >= 0) return Truth::no;
    return Truth::unknown;
  }
  if (a == b || (d.min && d.max && *d.min == 0 && *d.max == 0)) return Truth::yes;
  if ((d.min && *d.min > 0) || (d.max && *d.max < 0)) return Truth::no;
  // p + c = 0 has no solution when the divisor of p does not divide c.
  const Polynomial& p = terms(difference);
  if (!p.empty() && p.front().first.empty()) {
    std::int64_t c = p.front().second;
    std::int64_t g = known_divisor(sub(difference, constant(c)), facts);
    if (g > 1 && c % g != 0) return Truth::no;
  }
  // A symbol that is a multiple of m is written as m times another symbol, so that quotients by m
  // become exact.
  std::map<std::string, DimId, std::less<>> split;
  for (const std::string& name : symbols(difference)) {
    const SymbolFact* fact = facts.find(name);
    if (fact && fact->multiple > 1)
      split.emplace(name, mul(constant(fact->multiple), symbol(name + "/")));
  }
  if (split.empty()) return Truth::unknown;
  const DimId rest = substitute(difference, split);
  return rest.valid() && value(rest) == 0 ? Truth::yes : Truth::unknown;
}

/// Decides divisibility by the remainder in normal form, then by known divisors, and at last by
/// proving that the remainder is 0.
Truth Dims::divides(DimId b, DimId a, const Facts& facts) {
  DimId rest = mod(a, b);
  if (!rest) return Truth::unknown;
  if (auto v = value(rest)) return *v == 0 ? Truth::yes : Truth::no;
  auto vb = value(b);
  if (vb && *vb != 0 && known_divisor(a, facts) % *vb == 0) return Truth::yes;
  return prove(Compare::eq, rest, constant(0), facts);
}

}  // namespace pw
