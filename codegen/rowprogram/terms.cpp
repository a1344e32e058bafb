// Linear forms of index expressions: constant + the sum of factors · atoms. They normalise sums,
// and decide divisibility: an expression splits into a multiple of a step and a rest whose interval
// is below the step. Invariant: coefficients never overflow; an operation that would overflow
// returns nothing. Cost: at most kMaxTerms terms for each form.
#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "base/division.hpp"
#include "codegen/rowprogram/index.hpp"

namespace pw::rows {
namespace {

constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMaxTerms = 64;

}  // namespace

bool Indices::collect(IndexId id, std::int64_t factor, Terms& out) const {
  const Index& node = nodes_[id];
  std::int64_t scaled = 0;
  switch (node.kind) {
    case Index::Kind::constant:
      return !__builtin_mul_overflow(node.constant, factor, &scaled) &&
             !__builtin_add_overflow(out.constant, scaled, &out.constant);
    case Index::Kind::add: return collect(node.a, factor, out) && collect(node.b, factor, out);
    case Index::Kind::sub:
      return factor != std::numeric_limits<std::int64_t>::min() && collect(node.a, factor, out) &&
             collect(node.b, -factor, out);
    case Index::Kind::mul:
      if (nodes_[node.b].kind == Index::Kind::constant)
        return !__builtin_mul_overflow(factor, nodes_[node.b].constant, &scaled) &&
               collect(node.a, scaled, out);
      break;
    case Index::Kind::variable:
    case Index::Kind::param:
    case Index::Kind::slot:
    case Index::Kind::div:
    case Index::Kind::mod:
    case Index::Kind::clamp: break;
  }
  std::int64_t& sum = out.factors[id];
  if (__builtin_add_overflow(sum, factor, &sum)) return false;
  if (sum == 0) out.factors.erase(id);
  return out.factors.size() <= kMaxTerms;
}

std::optional<Terms> Indices::terms(IndexId id) const {
  Terms out;
  if (!collect(id, 1, out)) return std::nullopt;
  return out;
}

IndexId Indices::sum(const Terms& terms) {
  IndexId out;
  const auto include = [&](IndexId x) { out = out.valid() ? add(out, x) : x; };
  for (const auto& [atom, factor] : terms.factors) {
    if (factor > 0) include(mul(atom, constant(factor)));
  }
  if (!out.valid()) out = constant(0);
  for (const auto& [atom, factor] : terms.factors) {
    if (factor < 0) out = sub(out, mul(atom, constant(-factor)));
  }
  return add(out, constant(terms.constant));
}

/// Splits a = step * quotient + rest with 0 <= rest, and rest < step unless step is `by`. The step
/// is the largest divisor of `by` other than 1 for which this is proved and the quotient is
/// nonzero.
std::optional<Indices::Parts> Indices::parts(IndexId a, std::int64_t by) {
  const auto all = terms(a);
  if (!all) return std::nullopt;
  std::set<std::int64_t, std::greater<>> steps{by};
  for (const auto& [atom, factor] : all->factors) steps.insert(std::gcd(factor, by));
  for (std::int64_t step : steps) {
    if (step <= 1) break;
    Terms quotient, rest;
    quotient.constant = floor_div(all->constant, step);
    rest.constant = all->constant - quotient.constant * step;
    std::int64_t high = rest.constant;
    bool positive = true, bounded = true;
    for (const auto& [atom, factor] : all->factors) {
      if (factor % step == 0) {
        quotient.factors.emplace(atom, factor / step);
        continue;
      }
      const Interval range = intervals_[atom];
      std::int64_t most = 0;
      positive = positive && factor > 0 && range.low >= 0;
      bounded = bounded && range.high != kUnbounded &&
                !__builtin_mul_overflow(range.high, factor, &most) &&
                !__builtin_add_overflow(high, most, &high) && high < step;
      rest.factors.emplace(atom, factor);
    }
    const bool changes = quotient.constant != 0 || !quotient.factors.empty();
    if (positive && changes && (bounded || step == by))
      return Parts{step, sum(quotient), sum(rest)};
  }
  return std::nullopt;
}

IndexId Indices::substitute(IndexId id, VarId var, IndexId by) {
  if (!depends(id, var)) return id;
  const Index node = nodes_[id];
  if (node.kind == Index::Kind::variable) return by;
  if (node.kind == Index::Kind::slot)
    return id;  // a slot's value belongs to the place that it was read for
  const IndexId a = substitute(node.a, var, by), b = substitute(node.b, var, by);
  switch (node.kind) {
    case Index::Kind::add: return add(a, b);
    case Index::Kind::sub: return sub(a, b);
    case Index::Kind::mul: return mul(a, b);
    case Index::Kind::div: return div(a, b);
    case Index::Kind::mod: return mod(a, b);
    case Index::Kind::clamp: return clamp(a, b);
    case Index::Kind::constant:
    case Index::Kind::variable:
    case Index::Kind::param:
    case Index::Kind::slot: break;
  }
  return id;
}

}  // namespace pw::rows
