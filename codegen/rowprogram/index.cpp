// Builds index expressions. Expressions are hash-consed, and each constructor simplifies by
// interval arithmetic and algebraic identities of floor division. Invariant: equal ids mean equal
// expressions, and a simplification is applied only if it holds for all values in the variables'
// intervals. Cost: a constructor is constant apart from the linear forms that it compares (at most
// kMaxTerms terms, see terms.cpp).
#include "codegen/rowprogram/index.hpp"

#include <algorithm>
#include <iterator>

namespace pw::rows {
namespace {

using IndexKind = Index::Kind;
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

/// Adds interval ends; an overflow becomes unbounded.
std::int64_t plus(std::int64_t a, std::int64_t b, std::int64_t open) {
  std::int64_t sum = 0;
  return a == open || b == open || __builtin_add_overflow(a, b, &sum) ? open : sum;
}

Interval product(Interval a, Interval b) {
  if (a.low < 0 || b.low < 0) return {};
  std::int64_t low = 0, high = 0;
  if (__builtin_mul_overflow(a.low, b.low, &low)) low = 0;
  if (a.high == kMax || b.high == kMax || __builtin_mul_overflow(a.high, b.high, &high))
    high = kMax;
  return {low, high};
}

}  // namespace

std::vector<VarId> union_of(const std::vector<VarId>& a, const std::vector<VarId>& b) {
  std::vector<VarId> all;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

IndexId Indices::make(Index node, Interval interval, std::vector<VarId> vars) {
  const Key key{node.kind, node.constant, node.a, node.b};
  if (const auto found = ids_.find(key); found != ids_.end()) return found->second;
  const IndexId id = nodes_.push_back(node);
  intervals_.push_back(interval);
  vars_.push_back(std::move(vars));
  const auto part = [&](IndexId i) { return i.valid() ? sizes_[i] : 0; };
  sizes_.push_back(
      std::min<std::uint64_t>(1 + part(node.a) + part(node.b), std::uint64_t{1} << 32));
  ids_.emplace(key, id);
  return id;
}

IndexId Indices::make(IndexKind kind, IndexId a, IndexId b, Interval interval) {
  return make({kind, 0, a, b}, interval, union_of(vars_[a], vars_[b]));
}

IndexId Indices::constant(std::int64_t value) {
  return make({IndexKind::constant, value, {}, {}}, {value, value}, {});
}
IndexId Indices::param(ParamId param, std::int64_t low) {
  return make({IndexKind::param, param.index, {}, {}}, {std::max<std::int64_t>(low, 0), kMax}, {});
}
VarId Indices::variable(IndexId extent) { return extents_.push_back(extent); }

IndexId Indices::use(VarId var) {
  const Interval extent = intervals_[extents_[var]];
  const std::int64_t high = extent.high == kMax ? kMax : std::max<std::int64_t>(extent.high - 1, 0);
  return make({IndexKind::variable, var.index, {}, {}}, {0, high}, {var});
}

IndexId Indices::slot(SlotId slot, const std::vector<VarId>& vars) {
  return make({IndexKind::slot, slot.index, {}, {}}, {}, vars);
}

bool Indices::reads_slot(IndexId id) const {
  const Index& node = nodes_[id];
  return node.kind == IndexKind::slot || (node.a.valid() && reads_slot(node.a)) ||
         (node.b.valid() && reads_slot(node.b));
}

bool Indices::is_constant(IndexId id, std::int64_t value) const {
  return nodes_[id].kind == IndexKind::constant && nodes_[id].constant == value;
}

bool Indices::within(IndexId a, IndexId b) const {
  const Index &x = nodes_[a], &y = nodes_[b];
  if (x.kind == IndexKind::variable && extents_[VarId(static_cast<std::size_t>(x.constant))] == b)
    return true;
  if ((x.kind == IndexKind::mod || x.kind == IndexKind::clamp) && x.b == b) return true;
  if (y.kind != IndexKind::constant) return is_constant(a, 0) && intervals_[b].low > 0;
  return intervals_[a].low >= 0 && intervals_[a].high < y.constant;
}

/// Returns t if the quotient is t / k and the remainder t % k: an index that was split. It is
/// joined by quotient * k + remainder. Also if t is a quotient itself: s / (m k) and (s / m) % k
/// give s / m.
IndexId Indices::joined(IndexId quotient, IndexId remainder) const {
  const Index &q = nodes_[quotient], &r = nodes_[remainder];
  if (q.kind != IndexKind::div) return {};
  if (q.a == r.a && q.b == r.b) return r.a;
  const Index& part = nodes_[r.a];
  if (part.kind != IndexKind::div || q.a != part.a) return {};
  const Index &whole = nodes_[q.b], &m = nodes_[part.b], &k = nodes_[r.b];
  const bool constant = whole.kind == IndexKind::constant && m.kind == IndexKind::constant &&
                        k.kind == IndexKind::constant;
  const bool same = constant && m.constant > 0 && whole.constant % m.constant == 0 &&
                    whole.constant / m.constant == k.constant;
  return same ? r.a : IndexId();
}

IndexId Indices::add(IndexId a, IndexId b) {
  const Index x = nodes_[a], y = nodes_[b];
  if (x.kind == IndexKind::constant && y.kind != IndexKind::constant) return add(b, a);
  if (is_constant(b, 0)) return a;
  std::int64_t sum = 0;
  if (x.kind == IndexKind::constant && !__builtin_add_overflow(x.constant, y.constant, &sum))
    return constant(sum);
  if (y.kind == IndexKind::constant && x.kind == IndexKind::add &&
      nodes_[x.b].kind == IndexKind::constant &&
      !__builtin_add_overflow(nodes_[x.b].constant, y.constant, &sum)) {
    return add(x.a, constant(sum));
  }
  if (x.kind == IndexKind::mul && y.kind == IndexKind::mod && x.b == y.b) {
    if (const IndexId whole = joined(x.a, b); whole.valid()) return whole;
    // And with more before it: (u + t / k) * k + t % k is u * k + t.
    if (const Index sum_of = nodes_[x.a]; sum_of.kind == IndexKind::add)
      if (const IndexId whole = joined(sum_of.b, b); whole.valid())
        return add(mul(sum_of.a, x.b), whole);
  }
  const Interval p = intervals_[a], q = intervals_[b];
  return make(IndexKind::add, a, b, {plus(p.low, q.low, kMin), plus(p.high, q.high, kMax)});
}

IndexId Indices::sub(IndexId a, IndexId b) {
  const Index& y = nodes_[b];
  if (y.kind == IndexKind::constant && y.constant != kMin) return add(a, constant(-y.constant));
  if (a == b) return constant(0);
  const Interval p = intervals_[a], q = intervals_[b];
  const std::int64_t high = q.low == kMin ? kMax : plus(p.high, -q.low, kMax);
  return make(IndexKind::sub, a, b,
              {q.high == kMax || p.low == kMin ? kMin : plus(p.low, -q.high, kMin), high});
}

IndexId Indices::mul(IndexId a, IndexId b) {
  const Index x = nodes_[a], y = nodes_[b];
  if (x.kind == IndexKind::constant && y.kind != IndexKind::constant) return mul(b, a);
  if (is_constant(b, 1)) return a;
  if (is_constant(b, 0)) return b;
  std::int64_t all = 0;
  if (x.kind == IndexKind::constant && !__builtin_mul_overflow(x.constant, y.constant, &all))
    return constant(all);
  return make(IndexKind::mul, a, b, product(intervals_[a], intervals_[b]));
}

IndexId Indices::div(IndexId a, IndexId b) {
  const Index x = nodes_[a];
  if (is_constant(b, 1)) return a;
  if (within(a, b)) return constant(0);
  if (nodes_[b].kind == IndexKind::constant && x.kind == IndexKind::constant &&
      nodes_[b].constant > 0 && x.constant >= 0) {
    return constant(x.constant / nodes_[b].constant);
  }
  if (x.kind == IndexKind::mul && x.b == b && intervals_[b].low > 0) return x.a;
  if (x.kind == IndexKind::add && nodes_[x.a].kind == IndexKind::mul && nodes_[x.a].b == b &&
      within(x.b, b))
    return nodes_[x.a].a;
  if (const Index y = nodes_[b]; y.kind == IndexKind::constant && y.constant > 1) {
    if (const auto known = parts(a, y.constant)) {
      if (known->step == y.constant) return add(known->quotient, div(known->rest, b));
      return div(known->quotient, constant(y.constant / known->step));
    }
    if (x.kind == IndexKind::div && nodes_[x.b].kind == IndexKind::constant &&
        nodes_[x.b].constant > 0 && nodes_[x.b].constant < kMax / y.constant)
      return div(x.a, constant(nodes_[x.b].constant * y.constant));
  }
  const Interval p = intervals_[a], q = intervals_[b];
  Interval result{p.low >= 0 ? 0 : kMin, p.high};
  if (p.low >= 0 && p.high != kMax && q.low > 0) result.high = p.high / q.low;
  return make(IndexKind::div, a, b, result);
}

IndexId Indices::mod(IndexId a, IndexId b) {
  const Index x = nodes_[a];
  if (is_constant(b, 1)) return constant(0);
  if (within(a, b)) return a;
  if (nodes_[b].kind == IndexKind::constant && x.kind == IndexKind::constant &&
      nodes_[b].constant > 0 && x.constant >= 0) {
    return constant(x.constant % nodes_[b].constant);
  }
  if (x.kind == IndexKind::mul && x.b == b) return constant(0);
  if (x.kind == IndexKind::add && nodes_[x.a].kind == IndexKind::mul && nodes_[x.a].b == b &&
      within(x.b, b))
    return x.b;
  if (const Index y = nodes_[b]; y.kind == IndexKind::constant && y.constant > 1) {
    if (const auto known = parts(a, y.constant)) {
      if (known->step == y.constant) return mod(known->rest, b);
      const IndexId left = mod(known->quotient, constant(y.constant / known->step));
      return add(mul(left, constant(known->step)), known->rest);
    }
  }
  const Interval q = intervals_[b];
  return make(IndexKind::mod, a, b,
              {0, q.high == kMax ? kMax : std::max<std::int64_t>(q.high - 1, 0)});
}

IndexId Indices::clamp(IndexId a, IndexId extent) {
  if (within(a, extent)) return a;
  const Interval q = intervals_[extent];
  return make(IndexKind::clamp, a, extent,
              {0, q.high == kMax ? kMax : std::max<std::int64_t>(q.high - 1, 0)});
}

void Indices::print(IndexId id, bool factor, std::string& out) const {
  const Index& node = nodes_[id];
  const auto infix = [&](const char* sign, bool parentheses, bool tight) {
    if (parentheses) out += '(';
    print(node.a, tight, out);
    out += sign;
    print(node.b, tight, out);
    if (parentheses) out += ')';
  };
  switch (node.kind) {
    case IndexKind::constant: out += std::to_string(node.constant); return;
    case IndexKind::variable:
      out += node.constant == 0 ? "row" : "i" + std::to_string(node.constant);
      return;
    case IndexKind::param:
      out += node.constant == 0 ? "rows" : "d" + std::to_string(node.constant);
      return;
    case IndexKind::slot: out += "v" + std::to_string(node.constant); return;
    case IndexKind::add: return infix(" + ", factor, false);
    case IndexKind::sub:  // parentheses on the right side of a difference
      if (factor) out += '(';
      print(node.a, false, out);
      out += " - ";
      print(node.b, true, out);
      if (factor) out += ')';
      return;
    case IndexKind::mul: return infix(" * ", factor, true);
    case IndexKind::div: return infix(" / ", factor, true);
    case IndexKind::mod: return infix(" % ", factor, true);
    case IndexKind::clamp:
      out += "pw_clamp(";
      print(node.a, false, out);
      out += ", ";
      print(node.b, false, out);
      out += ')';
      return;
  }
}

std::string Indices::print(IndexId id) const {
  std::string out;
  print(id, false, out);
  return out;
}

}  // namespace pw::rows
