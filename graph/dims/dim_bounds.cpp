// Intervals in 128 bits with saturation: large factors give weak bounds, never wrong ones.
#include "graph/dims/dim_bounds.hpp"

#include <algorithm>
#include <numeric>

#include "base/division.hpp"

namespace pw {
namespace {

using Wide = __int128;
constexpr int kMaxQuotients = 16;  // nesting of quotients when bounding

/// Converts to 64 bits; nothing if the number does not fit.
std::optional<std::int64_t> narrow(Wide x) {
  if (x > INT64_MAX || x < INT64_MIN) return std::nullopt;
  return static_cast<std::int64_t>(x);
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

/// Returns the bounds of an atom. A quotient by a positive divisor is monotonic in its dividend,
/// and a remainder is from 0 to the divisor minus 1. Nested atoms are followed to depth
/// kMaxQuotients.
Bounds DimBounds::of_atom(AtomId id, int depth) const {
  const Polynomials::Atom& a = polynomials_.atom(id);
  if (a.kind == Polynomials::Atom::Kind::symbol) {
    const SymbolFact* fact = facts_.find(polynomials_.name(a));
    if (!fact) return {1, std::nullopt};  // an extent without facts is at least 1
    return {fact->min, fact->max};
  }
  if (depth > kMaxQuotients) return {};
  Bounds l = of_terms(a.a, depth + 1), r = of_terms(a.b, depth + 1);
  if (a.kind == Polynomials::Atom::Kind::maximum || a.kind == Polynomials::Atom::Kind::minimum)
    return a.kind == Polynomials::Atom::Kind::maximum ? larger(l, r)
                                                      : opposite(larger(opposite(l), opposite(r)));
  if (!r.min || *r.min <= 0) return {};
  if (a.kind == Polynomials::Atom::Kind::remainder)
    return {0, r.max ? std::optional(*r.max - 1) : std::nullopt};
  Bounds out;
  if (l.min)
    out.min = *l.min >= 0 ? (r.max ? floor_div(*l.min, *r.max) : 0) : floor_div(*l.min, *r.min);
  if (l.max)
    out.max = *l.max >= 0 ? floor_div(*l.max, *r.min) : (r.max ? floor_div(*l.max, *r.max) : -1);
  return out;
}

/// Each occurrence of an atom varies independently, so the interval may be wider than the set of
/// values.
Bounds DimBounds::of_terms(DimId id, int depth) const {
  if (!id) return {};
  return finish(sum_of(polynomials_.terms(id), [&](AtomId x) { return of_atom(x, depth); }));
}

/// Example: in 6 * m * (n / 3) it finds n / 3, since 3 divides 6.
Polynomials::Monomial::const_iterator DimBounds::cancelling(const Polynomials::Monomial& m,
                                                            std::int64_t c) const {
  return std::find_if(m.begin(), m.end(), [&](const auto& factor) {
    const Polynomials::Atom& atom = polynomials_.atom(factor.first);
    if (atom.kind != Polynomials::Atom::Kind::quotient || factor.second != 1) return false;
    const std::int64_t by = polynomials_.value(atom.b).value_or(0);
    return by > 1 && c % by == 0;
  });
}

/// Intervals lose that y / k and y are related. Writing k · (y / k) as y - r restores it: terms of
/// y may cancel against others before intervals are added.
Bounds DimBounds::opened(DimId id) const {
  const Polynomials::Polynomial& p = polynomials_.terms(id);
  const auto cancels = [&](const auto& term) {
    return cancelling(term.first, term.second) != term.first.end();
  };
  if (std::none_of(p.begin(), p.end(), cancels)) return {};
  const auto of = [&](AtomId x) { return of_atom(x, 0); };
  Polynomials::Terms terms;
  Interval sum{Wide(0), Wide(0)};
  for (const auto& term : p) {
    const auto& [m, c] = term;
    const auto at = cancelling(m, c);
    if (at == m.end()) {
      if (!Polynomials::add_product(terms, Polynomials::Polynomial{term}, {}, 1)) return {};
      continue;
    }
    const Polynomials::Atom& quotient = polynomials_.atom(at->first);
    const std::int64_t by = *polynomials_.value(quotient.b);
    Polynomials::Monomial others(m.begin(), at);
    others.insert(others.end(), at + 1, m.end());
    const Polynomials::Polynomial& y = polynomials_.terms(quotient.a);
    const std::int64_t more = y.empty() || !y.front().first.empty() ? 0 : y.front().second;
    std::int64_t constant = 0;
    if (!Polynomials::add_product(terms, y, others, c / by) ||
        __builtin_mul_overflow(more, c / by, &constant) ||
        __builtin_sub_overflow(terms[others], constant, &terms[others]))
      return {};
    const Interval factor = sum_of(Polynomials::Polynomial{{others, 1}}, of);
    const Interval rest = scaled(times(factor, {Wide(more) - by + 1, Wide(more)}), c / by);
    sum = {plus(sum.min, rest.min), plus(sum.max, rest.max)};
  }
  std::erase_if(terms, [](const auto& term) { return term.second == 0; });
  const Interval rest = sum_of(terms, of);
  return finish({plus(sum.min, rest.min), plus(sum.max, rest.max)});
}

/// Combines both analyses: the interval of the terms as they are, and that after quotients are
/// opened.
Bounds DimBounds::of(DimId id) const {
  if (!id) return {};
  return tighter(of_terms(id, 0), opened(id));
}

/// Returns the gcd of the terms' known divisors: the coefficient times the divisors of its symbols.
/// An overflow gives 1, which is always valid.
std::int64_t DimBounds::divisor(DimId id) const {
  if (!id) return 1;
  std::int64_t divisor = 0;
  for (const auto& [m, c] : polynomials_.terms(id)) {
    std::int64_t term = c == INT64_MIN ? 1 : c < 0 ? -c : c;
    for (const auto& [x, power] : m) {
      const Polynomials::Atom& a = polynomials_.atom(x);
      const SymbolFact* fact =
          a.kind == Polynomials::Atom::Kind::symbol ? facts_.find(polynomials_.name(a)) : nullptr;
      if (fact && fact->multiple > 1 && __builtin_mul_overflow(term, fact->multiple, &term))
        return 1;
    }
    divisor = std::gcd(divisor, term);
  }
  return divisor;  // 0 for the zero polynomial: a multiple of everything
}

}  // namespace pw
