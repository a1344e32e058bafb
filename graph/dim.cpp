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
// Cost: sums and products are sorted merges, O(t log t) for t terms. The limits below bound the
// terms of a polynomial, the size of an atom and the depth of the interval analysis.
#include "graph/dim.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace pw {
namespace {

using Wide = __int128;
constexpr int kMaxQuotients = 16;          // nesting of quotients when bounding
constexpr std::size_t kMaxTerms = 256;     // of one polynomial
constexpr std::size_t kMaxArguments = 16;  // of one maximum
constexpr std::uint32_t kMaxPower = 64;    // of one symbol: 2 to the power of 64 is not an extent
// Most atoms of a quotient when written out. Dims share their parts, but texts and walks repeat
// them.
constexpr int kMaxWritten = 1024;

/// Converts to 64 bits; nothing if the number does not fit.
std::optional<std::int64_t> narrow(Wide x) {
  if (x > INT64_MAX || x < INT64_MIN) return std::nullopt;
  return static_cast<std::int64_t>(x);
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  std::int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

using Limit = std::optional<Wide>;  // absent: unbounded

struct Interval {
  Limit min, max;
};

Limit plus(Limit a, Limit b) { return a && b ? Limit(*a + *b) : std::nullopt; }

Wide clamp_wide(Wide x) {  // keeps products of products inside 128 bits
  constexpr Wide kCap = Wide(1) << 100;
  return x > kCap ? kCap : x < -kCap ? -kCap : x;
}

/// Returns the interval of a product: the extremes of the four corner products if both intervals
/// are bounded. Large factors saturate, so that a bound may be weak but stays valid.
Interval times(const Interval& a, const Interval& b) {
  if (a.min && a.max && b.min && b.max) {
    Wide p[] = {clamp_wide(*a.min) * 1, 0, 0, 0};
    auto product = [](Wide x, Wide y) {
      constexpr Wide kSmall = Wide(1) << 62;
      bool big = x > kSmall || x < -kSmall || y > kSmall || y < -kSmall;
      if (!big) return x * y;
      bool negative = (x < 0) != (y < 0);
      if (x == 0 || y == 0) return Wide(0);
      return negative ? -(Wide(1) << 100) : (Wide(1) << 100);
    };
    p[0] = product(*a.min, *b.min);
    p[1] = product(*a.min, *b.max);
    p[2] = product(*a.max, *b.min);
    p[3] = product(*a.max, *b.max);
    return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
  }
  bool a_positive = a.min && *a.min >= 0, b_positive = b.min && *b.min >= 0;
  if (a_positive && b_positive)
    return {clamp_wide(*a.min) * clamp_wide(*b.min > (Wide(1) << 20) ? 1 : *b.min), std::nullopt};
  return {};
}

/// Returns the interval of a product with a constant; a negative constant exchanges the ends.
Interval scaled(const Interval& a, std::int64_t c) {
  auto by = [&](Limit x) {
    return x ? Limit(clamp_wide(*x) > (Wide(1) << 62) || clamp_wide(*x) < -(Wide(1) << 62)
                         ? (((*x > 0) == (c > 0)) ? (Wide(1) << 100) : -(Wide(1) << 100))
                         : *x * c)
             : std::nullopt;
  };
  return c >= 0 ? Interval{by(a.min), by(a.max)} : Interval{by(a.max), by(a.min)};
}

Bounds finish(const Interval& i) {
  Bounds b;
  if (i.min) b.min = narrow(*i.min);
  if (i.max) b.max = narrow(*i.max);
  return b;
}

Interval widen(const Bounds& b) {
  return {b.min ? Limit(*b.min) : std::nullopt, b.max ? Limit(*b.max) : std::nullopt};
}

/// Returns the bounds of the larger of two.
Bounds larger(const Bounds& a, const Bounds& b) {
  Bounds out;
  if (a.min || b.min) out.min = std::max(a.min.value_or(INT64_MIN), b.min.value_or(INT64_MIN));
  if (a.max && b.max) out.max = std::max(*a.max, *b.max);
  return out;
}

/// Returns the bounds of the negated value.
Bounds opposite(const Bounds& b) {
  auto minus = [](std::optional<std::int64_t> x) {
    return x && *x != INT64_MIN ? std::optional(-*x) : std::nullopt;
  };
  return {minus(b.max), minus(b.min)};
}

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

Dims::Dims(Strings& strings) : strings_(strings) {}

Dims::Dims(const Dims& other, Strings& strings)
    : strings_(strings),
      dims_(other.dims_),
      index_(other.index_),
      atoms_(other.atoms_),
      atom_ids_(other.atom_ids_),
      extremes_(other.extremes_) {}

/// Returns the id of a polynomial in normal form, and stores it on first use.
DimId Dims::intern(Polynomial p) {
  std::uint64_t hash = p.size();
  for (const auto& [monomial, coefficient] : p) {
    hash = combine(hash, static_cast<std::uint64_t>(coefficient));
    for (const auto& [atom, power] : monomial)
      hash = combine(hash, (std::uint64_t{power} << 32) + atom.index);
  }
  const std::uint32_t found =
      index_.find(hash, [&](std::uint32_t i) { return dims_[DimId(i)] == p; });
  if (found != HashIndex::kNone) return DimId(found);
  const DimId id = dims_.push_back(std::move(p));
  index_.insert(hash, id.index);
  return id;
}

/// Removes terms with coefficient 0, and interns the rest. Invalid for more than kMaxTerms terms.
DimId Dims::intern_checked(Terms terms) {
  std::erase_if(terms, [](const auto& term) { return term.second == 0; });
  if (terms.size() > kMaxTerms) return {};
  return intern(Polynomial(terms.begin(), terms.end()));
}

AtomId Dims::atom(Atom a) {
  auto [it, fresh] = atom_ids_.try_emplace(a);
  if (fresh) it->second = atoms_.push_back(a);
  return it->second;
}

DimId Dims::constant(std::int64_t value) {
  if (value == 0) return intern({});
  return intern({{Monomial{}, value}});
}

DimId Dims::symbol(std::string_view name) {
  AtomId id = atom({Atom::Kind::symbol, strings_.intern(name), {}, {}});
  return intern({{Monomial{{id, 1}}, 1}});
}

/// Adds two polynomials by merging their terms. Constants, the most frequent operands, are added
/// directly.
DimId Dims::add(DimId a, DimId b) {
  if (!a || !b) return {};
  if (const auto x = value(a), y = value(b); x && y) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(*x, *y, &sum)) return {};
    return constant(sum);
  }
  Terms terms(dims_[a].begin(), dims_[a].end());
  for (const auto& [m, c] : dims_[b])
    if (__builtin_add_overflow(terms[m], c, &terms[m])) return {};
  return intern_checked(std::move(terms));
}

DimId Dims::sub(DimId a, DimId b) { return add(a, mul(b, constant(-1))); }

bool Dims::add_product(Terms& to, const Polynomial& p, const Monomial& by, std::int64_t times) {
  for (const auto& [m, c] : p) {
    std::map<AtomId, std::uint32_t> powers(m.begin(), m.end());
    for (const auto& [x, power] : by)
      if ((powers[x] += power) > kMaxPower) return false;
    std::int64_t product = 0;
    std::int64_t& sum = to[Monomial(powers.begin(), powers.end())];
    if (__builtin_mul_overflow(c, times, &product) || __builtin_add_overflow(sum, product, &sum))
      return false;
  }
  return true;
}

DimId Dims::mul(DimId a, DimId b) {
  if (!a || !b) return {};
  if (dims_[a].size() * dims_[b].size() > kMaxTerms * 4) return {};
  Terms terms;
  for (const auto& [m, c] : dims_[a])
    if (!add_product(terms, dims_[b], m, c)) return {};
  return intern_checked(std::move(terms));
}

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
  if (dims_[b].size() == 1) {
    std::map<Monomial, std::int64_t> q;
    bool exact = true;
    for (const auto& term : dims_[a]) {
      if (auto part = quotient<Monomial>(term, dims_[b].front()))
        q[part->first] += part->second;
      else
        exact = false;
    }
    return std::pair{intern_checked(std::move(q)), exact};
  }
  DimId rest = a, q = constant(0);
  for (int round = 0; round < 32 && !dims_[rest].empty();
       ++round) {  // long division by the leading term
    auto part = quotient<Monomial>(leading(dims_[rest]), leading(dims_[b]));
    if (!part) return std::nullopt;
    DimId piece = intern({*part});
    q = add(q, piece);
    rest = sub(rest, mul(piece, b));
    if (!q || !rest) return std::nullopt;
  }
  if (!dims_[rest].empty()) return std::nullopt;
  return std::pair{q, true};
}

/// Makes an atom of an operation that does not simplify. Invalid if its text would exceed
/// kMaxWritten atoms.
DimId Dims::of_atom(Atom::Kind kind, DimId a, DimId b) {
  if (!a || !b) return {};
  int left = kMaxWritten;
  const auto fits = [&](const auto& self, DimId id) -> bool {
    for (const auto& [m, c] : dims_[id])
      for (const auto& [x, power] : m)
        for (std::uint32_t i = 0; i < power; ++i) {
          const Atom& inner = atoms_[x];
          if (--left < 0) return false;
          if (inner.kind == Atom::Kind::symbol) continue;
          if (!self(self, inner.a) || !self(self, inner.b)) return false;
        }
    return true;
  };
  if (!fits(fits, a) || !fits(fits, b)) return {};
  const AtomId id = atom({kind, {}, a, b});
  return intern({{Monomial{{id, 1}}, 1}});
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

const Dims::Atom* Dims::only_atom(DimId id) const {
  const Polynomial& p = dims_[id];
  if (p.size() != 1 || p.front().second != 1 || p.front().first.size() != 1 ||
      p.front().first.front().second != 1)
    return nullptr;
  return &atoms_[p.front().first.front().first];
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
  for (const auto& [m, coefficient] : dims_[a]) {
    for (const auto& [x, power] : m) {
      if (atoms_[x].kind != Atom::Kind::quotient) continue;
      if (found || power != 1 || m.size() != 1 || coefficient != 1) return {};
      found = atoms_[x];
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
  if (!a || !b || dims_[b].empty()) return {};
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
    const Atom& atom = atoms_[m.front().first];
    if (atom.kind != Atom::Kind::remainder) return false;
    const std::int64_t divisor = value(atom.b).value_or(0);
    return divisor != 0 && divisor % by == 0;
  };
  const Polynomial& p = dims_[id];
  if (std::none_of(p.begin(), p.end(), opens)) return {};
  Terms out;
  for (const auto& term : p) {
    const bool open = opens(term);
    const Polynomial& added = open ? dims_[atoms_[term.first.front().first].a] : Polynomial{term};
    if (!add_product(out, added, {}, open ? term.second : 1)) return {};
  }
  return intern_checked(std::move(out));
}

/// Reduces the part that b divides to 0, and removes inner remainders by multiples of b: (x %
/// (c·b)) % b is x % b. The remainder of a falling dim is written by the quotient, so that equal
/// sizes have one form.
DimId Dims::mod(DimId a, DimId b) {
  if (!a || !b || dims_[b].empty()) return {};
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
  if (by > 1 && falls(dims_[rest])) {  // -x % b is the distance from x up to a multiple of b
    const DimId x = mul(rest, constant(-1));
    const DimId whole = mul(div(add(x, constant(by - 1)), b), b);
    if (const DimId fill = sub(whole, x)) return fill;
  }
  return of_atom(Atom::Kind::remainder, rest, b);
}

std::optional<std::int64_t> Dims::value(DimId id) const {
  if (!id) return std::nullopt;
  const Polynomial& p = dims_[id];
  if (p.empty()) return 0;
  if (p.size() == 1 && p.front().first.empty()) return p.front().second;
  return std::nullopt;
}

bool Dims::is_symbol(DimId id) const {
  if (!id) return false;
  const Polynomial& p = dims_[id];
  return p.size() == 1 && p.front().second == 1 && p.front().first.size() == 1 &&
         p.front().first.front().second == 1 &&
         atoms_[p.front().first.front().first].kind == Atom::Kind::symbol;
}

std::string Dims::print(const Monomial& m) const {
  std::string out;
  for (const auto& [id, power] : m) {
    const Atom& a = atoms_[id];
    std::string text;
    switch (a.kind) {
      case Atom::Kind::symbol: text = strings_.text(a.name); break;
      case Atom::Kind::quotient: text = "((" + print(a.a) + ") / (" + print(a.b) + "))"; break;
      case Atom::Kind::remainder: text = "((" + print(a.a) + ") % (" + print(a.b) + "))"; break;
      case Atom::Kind::maximum: text = "max(" + print(a.a) + ", " + print(a.b) + ")"; break;
      case Atom::Kind::minimum: text = "min(" + print(a.a) + ", " + print(a.b) + ")"; break;
    }
    for (std::uint32_t i = 0; i < power; ++i) out += (out.empty() ? "" : "*") + text;
  }
  return out;
}

std::string Dims::print(DimId id) const {
  if (!id) return "<overflow>";
  const Polynomial& p = dims_[id];
  if (p.empty()) return "0";
  std::string out;
  for (auto it = p.rbegin(); it != p.rend(); ++it) {  // the constant comes last
    const auto& [m, c] = *it;
    bool negative = c < 0;
    std::string sign = out.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    std::string number = negative ? std::to_string(c).substr(1) : std::to_string(c);
    std::string monomial = print(m);
    out += sign + (m.empty() ? number : number == "1" ? monomial : number + "*" + monomial);
  }
  return out;
}

std::vector<std::string> Dims::symbols(DimId id) const {
  std::vector<std::string> out;
  if (!id) return out;
  for (const auto& [m, c] : dims_[id]) {
    for (const auto& [x, power] : m) {
      const Atom& a = atoms_[x];
      if (a.kind == Atom::Kind::symbol) {
        out.emplace_back(strings_.text(a.name));
        continue;
      }
      for (DimId inner : {a.a, a.b})
        for (std::string& s : symbols(inner)) out.push_back(std::move(s));
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// Builds the dim again from its terms, so that quotients and extremes simplify under the
/// substitution.
DimId Dims::substitute(DimId id, const std::map<std::string, DimId, std::less<>>& with) {
  if (!id) return {};
  Polynomial p = dims_[id];  // copied: interning may move the table
  DimId sum = constant(0);
  for (const auto& [m, c] : p) {
    DimId term = constant(c);
    for (const auto& [x, power] : m) {
      Atom a = atoms_[x];
      DimId factor;
      if (a.kind == Atom::Kind::symbol) {
        auto it = with.find(strings_.text(a.name));
        factor = it == with.end() ? symbol(std::string(strings_.text(a.name))) : it->second;
      } else {
        DimId l = substitute(a.a, with), r = substitute(a.b, with);
        factor = apply(a.kind, l, r);
      }
      for (std::uint32_t i = 0; i < power; ++i) term = mul(term, factor);
    }
    sum = add(sum, term);
  }
  return sum;
}

std::optional<std::int64_t> Dims::evaluate(
    DimId id, const std::map<std::string, std::int64_t, std::less<>>& with) const {
  if (!id) return std::nullopt;
  std::int64_t sum = 0;
  for (const auto& [m, c] : dims_[id]) {
    std::int64_t term = c;
    for (const auto& [x, power] : m) {
      const Atom& a = atoms_[x];
      std::int64_t factor = 0;
      if (a.kind == Atom::Kind::symbol) {
        auto it = with.find(strings_.text(a.name));
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
  const Polynomial p = dims_[id];  // copied: interning may move the table
  DimId sum = constant(0);
  for (const auto& [m, c] : p) {
    DimId term = constant(c);
    for (const auto& [x, power] : m) {
      const Atom a = atoms_[x];
      DimId factor = intern({{Monomial{{x, 1}}, 1}});
      if (a.kind != Atom::Kind::symbol) {
        const DimId l = decided(a.a, facts), r = decided(a.b, facts);
        factor = apply(a.kind, l, r);
        const bool largest = a.kind == Atom::Kind::maximum;
        if (largest || a.kind == Atom::Kind::minimum) {
          const Bounds d = bounds(sub(l, r), facts);
          if (d.min && *d.min >= 0) factor = largest ? l : r;
          if (d.max && *d.max <= 0) factor = largest ? r : l;
        }
      }
      for (std::uint32_t i = 0; i < power; ++i) term = mul(term, factor);
    }
    sum = add(sum, term);
  }
  return sum;
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

/// Returns the bounds of an atom. A quotient by a positive divisor is monotonic in its dividend,
/// and a remainder is from 0 to the divisor minus 1. Nested atoms are followed to depth
/// kMaxQuotients.
Bounds Dims::bounds(AtomId id, const Facts& facts, int depth) const {
  const Atom& a = atoms_[id];
  if (a.kind == Atom::Kind::symbol) {
    const SymbolFact* fact = facts.find(strings_.text(a.name));
    if (!fact) return {1, std::nullopt};  // an extent without facts is at least 1
    return {fact->min, fact->max};
  }
  if (depth > kMaxQuotients) return {};
  Bounds l = bounds(a.a, facts, depth + 1), r = bounds(a.b, facts, depth + 1);
  if (a.kind == Atom::Kind::maximum || a.kind == Atom::Kind::minimum)
    return a.kind == Atom::Kind::maximum ? larger(l, r)
                                         : opposite(larger(opposite(l), opposite(r)));
  if (!r.min || *r.min <= 0) return {};
  if (a.kind == Atom::Kind::remainder) return {0, r.max ? std::optional(*r.max - 1) : std::nullopt};
  Bounds out;
  if (l.min)
    out.min = *l.min >= 0 ? (r.max ? floor_div(*l.min, *r.max) : 0) : floor_div(*l.min, *r.min);
  if (l.max)
    out.max = *l.max >= 0 ? floor_div(*l.max, *r.min) : (r.max ? floor_div(*l.max, *r.max) : -1);
  return out;
}

namespace {

/// Returns the interval of a sum of terms from that of each atom: products by the four corners, a
/// sum by adding the ends. An absent end is unbounded.
template <class Terms, class OfAtom>
Interval sum_of(const Terms& terms, const OfAtom& of) {
  Interval sum{Wide(0), Wide(0)};
  for (const auto& [m, c] : terms) {
    Interval product{Wide(1), Wide(1)};
    for (const auto& [x, power] : m)
      for (std::uint32_t i = 0; i < power; ++i) product = times(product, widen(of(x)));
    const Interval term = scaled(product, c);
    sum = {plus(sum.min, term.min), plus(sum.max, term.max)};
  }
  return sum;
}

/// Intersects two valid bounds of one value.
Bounds tighter(const Bounds& a, const Bounds& b) {
  Bounds out = a;
  if (b.min) out.min = std::max(*b.min, a.min.value_or(INT64_MIN));
  if (b.max) out.max = std::min(*b.max, a.max.value_or(INT64_MAX));
  return out;
}

}  // namespace

Bounds Dims::bounds(DimId id, const Facts& facts, int depth) const {
  if (!id) return {};
  return finish(sum_of(dims_[id], [&](AtomId x) { return bounds(x, facts, depth); }));
}

Dims::Monomial::const_iterator Dims::cancelling(const Monomial& m, std::int64_t c) const {
  return std::find_if(m.begin(), m.end(), [&](const auto& factor) {
    const Atom& atom = atoms_[factor.first];
    if (atom.kind != Atom::Kind::quotient || factor.second != 1) return false;
    const std::int64_t by = value(atom.b).value_or(0);
    return by > 1 && c % by == 0;
  });
}

/// Intervals lose that y / k and y are related. Writing k · (y / k) as y - r restores it: terms of
/// y may cancel against others before intervals are added.
Bounds Dims::opened(DimId id, const Facts& facts) const {
  const Polynomial& p = dims_[id];
  const auto cancels = [&](const auto& term) {
    return cancelling(term.first, term.second) != term.first.end();
  };
  if (std::none_of(p.begin(), p.end(), cancels)) return {};
  const auto of = [&](AtomId x) { return bounds(x, facts, 0); };
  Terms terms;
  Interval sum{Wide(0), Wide(0)};
  for (const auto& term : p) {
    const auto& [m, c] = term;
    const auto at = cancelling(m, c);
    if (at == m.end()) {
      if (!add_product(terms, Polynomial{term}, {}, 1)) return {};
      continue;
    }
    const Atom& quotient = atoms_[at->first];
    const std::int64_t by = *value(quotient.b);
    Monomial others(m.begin(), at);
    others.insert(others.end(), at + 1, m.end());
    const Polynomial& y = dims_[quotient.a];
    const std::int64_t more = y.empty() || !y.front().first.empty() ? 0 : y.front().second;
    std::int64_t constant = 0;
    if (!add_product(terms, y, others, c / by) || __builtin_mul_overflow(more, c / by, &constant) ||
        __builtin_sub_overflow(terms[others], constant, &terms[others]))
      return {};
    const Interval factor = sum_of(Polynomial{{others, 1}}, of);
    const Interval rest = scaled(times(factor, {Wide(more) - by + 1, Wide(more)}), c / by);
    sum = {plus(sum.min, rest.min), plus(sum.max, rest.max)};
  }
  std::erase_if(terms, [](const auto& term) { return term.second == 0; });
  const Interval rest = sum_of(terms, of);
  return finish({plus(sum.min, rest.min), plus(sum.max, rest.max)});
}

/// Combines both analyses: the interval of the terms as they are, and that after quotients are
/// opened.
Bounds Dims::bounds(DimId id, const Facts& facts) const {
  if (!id) return {};
  return tighter(bounds(id, facts, 0), opened(id, facts));
}

/// Returns the gcd of the terms' known divisors: the coefficient times the divisors of its symbols.
/// An overflow gives 1, which is always valid.
std::int64_t Dims::known_divisor(DimId id, const Facts& facts) const {
  if (!id) return 1;
  std::int64_t divisor = 0;
  for (const auto& [m, c] : dims_[id]) {
    std::int64_t term = c == INT64_MIN ? 1 : c < 0 ? -c : c;
    for (const auto& [x, power] : m) {
      const Atom& a = atoms_[x];
      const SymbolFact* fact =
          a.kind == Atom::Kind::symbol ? facts.find(strings_.text(a.name)) : nullptr;
      if (fact && fact->multiple > 1 && __builtin_mul_overflow(term, fact->multiple, &term))
        return 1;
    }
    divisor = std::gcd(divisor, term);
  }
  return divisor;  // 0 for the zero polynomial: a multiple of everything
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
  const Polynomial& p = dims_[difference];
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
