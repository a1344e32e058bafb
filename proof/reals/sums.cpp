// Normal form of sums over indices. A sum is linear: factors without its index move in front,
// nested sums merge, and factors that share no index become separate sums. Bound indices are
// renamed canonically, in the order that gives the least product, so that equality up to renaming
// (alpha equivalence) is equality of terms. An index that is only read through its quotient and
// remainder is replaced by two digits. All orders of the tied indices of one sum are tried, so
// their number is limited.
// Example: sum_i sum_k a[i] b[k] ⇒ (sum_i a[i]) (sum_k b[k]), since no factor reads both indices.
// In the matmul sum_k x[i, k] w[k, j] the index k ties both factors, so it stays one sum. All laws
// are those of finite sums of reals or of residues modulo 2^k. Over floats they change the
// rounding, which prove.cpp reports.
#include "proof/reals/sums.hpp"

#include <algorithm>
#include <numeric>

namespace pw::proof {
namespace {

constexpr std::size_t kMostIndices = 5;  // of one sum, because all their orders are tried

}  // namespace

/// Converts a product of sizes to a product of atoms, so that a sum over it equals nested sums over
/// its factors.
/// sum_i 1 over n * m elements is n * m; nested sums give the product of n and m. Both are one form
/// if the product of sizes is a product of atoms. A sum such as n + 1 stays one atom, and so does a
/// power.
Fraction Sums::extent_of(Ix extent) {
  if (const auto value = integers_.number(extent)) return number(*value);
  const auto sizes = integers_.symbols_of(extent);
  if (!sizes || (sizes->size() == 1 && integers_.factor_of(extent) == 1))
    return field_.index(extent);
  Fraction out = number(integers_.factor_of(extent));
  for (const std::string& size : *sizes)
    out = field_.multiply(out, field_.index(integers_.symbol(size)));
  return out;
}

/// Substitutes for the index of a level; nothing if a tensor is read at it.
/// Rebuilds every atom that depends on the level, because the laws of abs, extremes, and sums may
/// apply to the new arguments. An integer that a tensor holds at this index cannot be substituted:
/// it is identified by the number of its term.
std::optional<Fraction> Sums::replaced(const Fraction& f, std::uint32_t level, Ix with) {
  const auto of = [&](const Polynomial& p) -> std::optional<Fraction> {
    Fraction out = number(0);
    for (const auto& [monomial, factor] : p) {
      Fraction product = number(factor);
      for (const auto& [atom, power] : monomial) {
        const auto part = replaced(atom, level, with);
        if (!part) return std::nullopt;
        for (int i = 0; i < power; ++i) product = field_.multiply(product, *part);
      }
      out = field_.add(out, product);
    }
    return out;
  };
  if (!dependence_.depends(f, level)) return f;
  const auto over = of(f.over), under = of(f.under);
  if (!over || !under || under->over.empty()) return std::nullopt;
  return field_.multiply(*over, field_.inverse(*under));
}

std::optional<Fraction> Sums::replaced(Factor factor, std::uint32_t level, Ix with) {
  field_.spend(8);
  const Atom& a = field_.atom(factor);
  Fraction self;
  self.over.emplace(Monomial{{factor, 1}}, 1);
  self.under.emplace(Monomial(), 1);
  if (!dependence_.depends(factor, level)) return self;
  if (order_.is_extreme(factor)) return replaced_clauses(self, level, with);
  // A sum binds indices of its own, so it is opened with fresh names and closed again, which avoids
  // capture.
  if (a.kind == Atom::Kind::sum) return replaced_sum(a, level, with);
  Atom out = a;
  for (Ix& ix : out.at) {
    if (dependence_.value_depends(ix, level)) return std::nullopt;
    ix = integers_.substituted(ix, level, with);
  }
  std::vector<Fraction> args;
  for (FractionId& arg : out.args) {
    const auto part = replaced(field_[arg], level, with);
    if (!part) return std::nullopt;
    args.push_back(*part);
    arg = field_.intern(*part);
  }
  if (a.kind == Atom::Kind::abs) return order_.absolute(args[0]);
  if (a.kind == Atom::Kind::above) return order_.positive_sign(args[0]);
  if (a.kind == Atom::Kind::zero) return order_.is_zero(args[0]);
  if (a.kind == Atom::Kind::index) return extent_of(out.at[0]);
  const Fraction made = field_.make(out);
  // A function's value range does not depend on the name of an index.
  ranges_.copy(factor, made.over.begin()->first.begin()->first);
  return made;
}

/// Literals may become comparable after the substitution, so clauses are absorbed again.
std::optional<Fraction> Sums::replaced_clauses(const Fraction& f, std::uint32_t level, Ix with) {
  const bool whole =
      field_.atom(f.over.begin()->first.begin()->first).kind == Atom::Kind::whole_clauses;
  Clauses out;
  for (const auto& clause : order_.clauses_of(f)) {
    std::set<FractionId> literals;
    for (FractionId literal : clause) {
      const auto part = replaced(field_[literal], level, with);
      if (!part) return std::nullopt;
      literals.insert(field_.intern(*part));
    }
    out.insert(std::move(literals));
  }
  order_.absorb(out);
  return order_.of_clauses(std::move(out), whole);
}

std::optional<Fraction> Sums::replaced_sum(const Atom& sum, std::uint32_t level, Ix with) {
  Indices indices;
  const auto body = opened(sum, indices);
  if (!body) return std::nullopt;
  const auto changed = replaced(*body, level, with);
  if (!changed) return std::nullopt;
  return sum_over(std::move(indices), *changed);
}

/// Requires an atom of kind sum. Fresh names are above every canonical name, so they cannot meet
/// one.
std::optional<Fraction> Sums::opened(const Atom& sum, Indices& indices) {
  Fraction body = field_[sum.args[0]];
  for (std::size_t k = 0; k < sum.at.size(); ++k) {
    const std::uint32_t name = kLoose + loose_++;
    const auto next = replaced(body, sum.level + static_cast<std::uint32_t>(k),
                               integers_.variable(name, sum.at[k]));
    if (!next) return std::nullopt;
    body = *next;
    indices.push_back({name, sum.at[k]});
  }
  return body;
}

/// A canonical name is one above the largest bound name in the body. Equal bodies get equal names,
/// so alpha-equivalent terms are one atom, and no inner index is captured. If the index cannot be
/// replaced, the body keeps its name; then renamed terms stay distinct, which is sound but
/// incomplete.
Fraction Sums::bound(const std::string& name, const Fraction& body, std::uint32_t level,
                     Ix extent) {
  const std::uint32_t canonical = std::max(kBound - 1, dependence_.height(body)) + 1;
  if (canonical < kLoose)
    if (const auto named = replaced(body, level, integers_.variable(canonical, extent)))
      return field_.make({name, {field_.intern(*named)}, canonical, {extent}, false});
  return field_.make({name, {field_.intern(body)}, level, {extent}, false});
}

/// Adjacent extremes have two orders. The one with the lesser atom is canonical:
/// max_i max_k x[i, k] = max_k max_i x[i, k].
Fraction Sums::extreme(const std::string& name, const Fraction& body, std::uint32_t level,
                       Ix extent) {
  Fraction out = bound(name, body, level, extent);
  if (body.over.size() != 1 || constant(body) || product_of(body.over.begin()->first) != body)
    return out;
  const Monomial& product = body.over.begin()->first;
  const Atom inner = field_.atom(product.begin()->first);
  if (product.size() != 1 || product.begin()->second != 1 || inner.name != name) return out;
  Indices indices;
  const auto opened_body = opened(inner, indices);
  if (!opened_body || dependence_.depends(field_.index(indices[0].extent), level)) return out;
  const Fraction other =
      bound(name, extreme(name, *opened_body, level, extent), indices[0].level, indices[0].extent);
  const auto atom_of = [&](const Fraction& f) {
    return field_.atom(f.over.begin()->first.begin()->first);
  };
  return atom_of(other) < atom_of(out) ? other : out;
}

/// Applies linearity: moves factors without the index out of the sum.
/// A denominator without the index moves out. With the index, 1 / x[i] has no linear law, so the
/// whole sum is one atom.
Fraction Sums::sum(const Fraction& body, std::uint32_t level, Ix extent) {
  if (integers_.number(extent) == 1 && !dependence_.depends(body, level)) return body;
  if (dependence_.depends(body.under, level)) return bound("sum of fractions", body, level, extent);
  return sum_over({{level, extent}}, body);
}

/// Requires that no denominator in `body` contains an index.
/// sum_i (p + q) ⇒ sum_i p + sum_i q, one sum for each monomial. The limit on indices includes room
/// for merged sums.
Fraction Sums::sum_over(Indices indices, const Fraction& body) {
  if (indices.size() > kMostIndices + 3) throw TooLarge{};
  Fraction out = number(0);
  for (const auto& [monomial, factor] : body.over)
    out = field_.add(out, field_.multiply(number(factor), sum_of_product(indices, monomial)));
  return field_.multiply(out, field_.inverse({body.under, number(1).over}));
}

/// Applies three laws in this order: merge a nested sum, move out the factors without an index, and
/// separate groups of indices that no factor connects.
Fraction Sums::sum_of_product(const Indices& indices, const Monomial& monomial) {
  const auto uses = [&](Factor factor) {
    return std::any_of(indices.begin(), indices.end(),
                       [&](const Index& i) { return dependence_.depends(factor, i.level); });
  };
  // Nested sums merge into one.
  for (const auto& [factor, power] : monomial) {
    if (power < 1 || field_.atom(factor).kind != Atom::Kind::sum || !uses(factor)) continue;
    Indices more = indices;
    const auto inner = opened(Atom(field_.atom(factor)), more);
    if (!inner) continue;
    Monomial rest = monomial;
    if (--rest[factor] == 0) rest.erase(factor);
    return sum_over(std::move(more), field_.multiply(product_of(rest), *inner));
  }
  // Factors that share no index become separate sums.
  // A union of sets: two indices are in one part if some factor depends on both.
  std::vector<std::size_t> part(indices.size());
  std::iota(part.begin(), part.end(), std::size_t{0});
  for (const auto& [factor, power] : monomial) {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (!dependence_.depends(factor, indices[i].level)) continue;
      if (!first) {
        first = part[i];
        continue;
      }
      const std::size_t old = part[i];
      std::replace(part.begin(), part.end(), old, *first);
    }
  }
  Fraction out = number(1);
  std::map<std::size_t, std::pair<Indices, Monomial>> parts;
  for (std::size_t i = 0; i < indices.size(); ++i) parts[part[i]].first.push_back(indices[i]);
  Monomial outside;
  for (const auto& [factor, power] : monomial) {
    std::size_t i = 0;
    while (i < indices.size() && !dependence_.depends(factor, indices[i].level)) ++i;
    (i == indices.size() ? outside : parts[part[i]].second).emplace(factor, power);
  }
  out = product_of(outside);
  for (const auto& [id, own] : parts) {
    const auto& [of, inside] = own;
    // A sum of 1 over an index is its extent.
    if (inside.empty()) {
      for (const Index& index : of) out = field_.multiply(out, extent_of(index.extent));
    } else {
      out = field_.multiply(out, tied_sum(of, inside));
    }
  }
  return out;
}

/// Looks for quotients i / d of the index itself, in every argument of the factor.
void Sums::collect_divisors(Factor factor, std::uint32_t level, std::set<Ix>& out) {
  field_.spend(8);
  const Atom& a = field_.atom(factor);
  for (Ix ix : a.at) integers_.divisors(ix, level, out);
  for (FractionId arg : a.args) {
    if (arg == kClause) continue;
    const Fraction& f = field_[arg];
    for (const Polynomial* p : {&f.over, &f.under})
      for (const auto& [monomial, number] : *p)
        for (const auto& [inner, power] : monomial) collect_divisors(inner, level, out);
  }
}

/// Splits an index that is read through quotients into two digits, and merges two that are read as
/// one number. Both substitutions are bijections of the index set, so they preserve the sum. If d
/// divides n, i = d p + q with p < n / d and q < d takes each value once. Conversely, pairs (i, k)
/// with k < l are the numbers m = l i + k. That substitution applies if the body then reads m only.
std::optional<Fraction> Sums::renumbered(const Indices& indices, const Monomial& product) {
  const Fraction body = product_of(product);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::set<Ix> divisors;
    for (const auto& [factor, power] : product)
      collect_divisors(factor, indices[i].level, divisors);
    for (Ix by : divisors) {
      const auto high = integers_.whole_quotient(indices[i].extent, by);
      // With a single high digit the index would become itself, without end.
      if (!high || integers_.number(*high) == 1) continue;
      Indices digits = indices;
      digits.erase(digits.begin() + static_cast<std::ptrdiff_t>(i));
      const std::uint32_t p = kLoose + loose_++, q = kLoose + loose_++;
      digits.push_back({p, *high});
      digits.push_back({q, by});
      const Ix as =
          integers_.add(integers_.mul(by, integers_.variable(p, *high)), integers_.variable(q, by));
      if (const auto changed = replaced(body, indices[i].level, as))
        return sum_over(std::move(digits), *changed);
    }
  }
  for (std::size_t i = 0; i < indices.size(); ++i) {
    for (std::size_t k = 0; k < indices.size(); ++k) {
      if (i == k) continue;
      const Ix low = indices[k].extent, all = integers_.mul(indices[i].extent, low);
      const std::uint32_t name = kLoose + loose_++;
      const Ix as = integers_.sub(
          integers_.variable(name, all),
          integers_.mul(low, integers_.variable(indices[i].level, indices[i].extent)));
      const auto changed = replaced(body, indices[k].level, as);
      if (!changed || dependence_.depends(*changed, indices[i].level)) continue;
      Indices fewer;
      for (std::size_t n = 0; n < indices.size(); ++n)
        if (n != i && n != k) fewer.push_back(indices[n]);
      fewer.push_back({name, all});
      return sum_over(std::move(fewer), *changed);
    }
  }
  return std::nullopt;
}

/// Names the indices in the order that gives the least product.
/// The product of factors commutes and so do the sums, so all orders denote one value. The least
/// key under all orders is a canonical representative. n indices have n! orders, hence the limit of
/// 5 indices: 120 products.
Fraction Sums::tied_sum(const Indices& indices, const Monomial& product) {
  if (auto other = renumbered(indices, product)) return *other;
  const Fraction body = product_of(product);
  const std::uint32_t first = std::max(kBound - 1, dependence_.height(body)) + 1;
  if (indices.size() > kMostIndices || first + indices.size() >= kLoose) throw TooLarge{};
  std::vector<std::size_t> order(indices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::optional<Atom> best;
  std::optional<std::pair<std::vector<Ix>, Monomial>> least;
  do {
    std::optional<Fraction> named = body;
    std::vector<Ix> extents;
    for (std::size_t n = 0; n < order.size() && named; ++n) {
      const Index& index = indices[order[n]];
      extents.push_back(index.extent);
      named = replaced(Fraction(*named), index.level,
                       integers_.variable(first + static_cast<std::uint32_t>(n), index.extent));
    }
    // The renamed product must stay a product: laws may have turned a factor into a sum.
    if (!named || named->over.size() != 1) break;
    std::pair key(extents, named->over.begin()->first);
    if (least && *least <= key) continue;
    least = std::move(key);
    best = Atom{"", {field_.intern(*named)}, first, extents, false, Atom::Kind::sum};
  } while (std::next_permutation(order.begin(), order.end()));
  if (best) return field_.make(*best);
  // An index read from a tensor keeps its names.
  Fraction out = body;
  for (auto index = indices.rbegin(); index != indices.rend(); ++index)
    out =
        field_.make({"sum of values", {field_.intern(out)}, index->level, {index->extent}, false});
  return out;
}

}  // namespace pw::proof
