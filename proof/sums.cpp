// Normal form of sums over indices. A sum is linear: factors without its index move in front,
// nested sums merge, and factors that share no index become separate sums. Bound indices are
// renamed canonically, in the order that gives the least product, so that equality up to renaming
// (alpha equivalence) is equality of terms. An index that is only read through its quotient and
// remainder is replaced by two digits. All orders of the tied indices of one sum are tried, so
// their number is limited.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "proof/reals.hpp"

namespace pw::proof {
namespace {

constexpr std::uint32_t kBound = 3000;   // first name of a bound index
constexpr std::uint32_t kLoose = 10000;  // first name of an index not yet bound
constexpr std::size_t kMostIndices = 5;  // of one sum, because all their orders are tried

}  // namespace

// ---- names of bound indices

/// Returns the largest bound name in it; 0 if there is none.
std::uint32_t Reals::height(Factor factor) {
  while (heights_.size() <= factor) heights_.push_back(kUnknownHeight);
  if (heights_[factor] != kUnknownHeight) return heights_[factor];
  const Atom a = atoms_[factor];
  std::uint32_t out = 0;
  for (FractionId arg : a.args)
    if (arg != kClause) out = std::max(out, height(Fraction(fractions_[arg])));
  if (a.level >= kBound && a.level < kLoose)
    out = std::max(out, a.level + static_cast<std::uint32_t>(a.at.size()) - 1);
  heights_[factor] = out;
  return out;
}

std::uint32_t Reals::height(const Fraction& f) {
  std::uint32_t out = 0;
  for (const Polynomial* p : {&f.over, &f.under})
    for (const auto& [monomial, factor] : *p)
      for (const auto& [atom, power] : monomial) out = std::max(out, height(atom));
  return out;
}

/// Substitutes for the index of a level; nothing if a tensor is read at it.
std::optional<Reals::Fraction> Reals::replaced(const Fraction& f, std::uint32_t level, Ix with) {
  const auto of = [&](const Polynomial& p) -> std::optional<Fraction> {
    Fraction out = number(0);
    for (const auto& [monomial, factor] : p) {
      Fraction product = number(factor);
      for (const auto& [atom, power] : monomial) {
        const auto part = replaced(atom, level, with);
        if (!part) return std::nullopt;
        for (int i = 0; i < power; ++i) product = multiply(product, *part);
      }
      out = add(out, product);
    }
    return out;
  };
  if (!depends(f, level)) return f;
  const auto over = of(f.over), under = of(f.under);
  if (!over || !under || under->over.empty()) return std::nullopt;
  return multiply(*over, inverse(*under));
}

std::optional<Reals::Fraction> Reals::replaced(Factor factor, std::uint32_t level, Ix with) {
  spend(8);
  const Atom a = atoms_[factor];
  Fraction self;
  self.over.emplace(Monomial{{factor, 1}}, 1);
  self.under.emplace(Monomial(), 1);
  if (!depends(factor, level)) return self;
  if (is_extreme(factor)) return replaced_clauses(self, level, with);
  if (a.kind == Atom::Kind::sum) return replaced_sum(a, level, with);
  Atom out = a;
  for (Ix& ix : out.at) {
    std::set<std::uint32_t> values;
    integers_.collect_values(ix, values);
    for (std::uint32_t value : values)
      if (depends(Fraction(this->of(TermId(std::size_t{value}))), level)) return std::nullopt;
    ix = integers_.substituted(ix, level, with);
  }
  std::vector<Fraction> args;
  for (FractionId& arg : out.args) {
    const auto part = replaced(Fraction(fractions_[arg]), level, with);
    if (!part) return std::nullopt;
    args.push_back(*part);
    arg = intern(*part);
  }
  if (a.kind == Atom::Kind::abs) return absolute(args[0]);
  if (a.kind == Atom::Kind::above) return positive_sign(args[0]);
  if (a.kind == Atom::Kind::zero) return is_zero(args[0]);
  if (a.kind == Atom::Kind::index) return extent_of(out.at[0]);
  const Fraction made = atom(out);
  const auto range = ranges_.find(factor);
  if (range != ranges_.end())
    ranges_.emplace(made.over.begin()->first.begin()->first, range->second);
  return made;
}

std::optional<Reals::Fraction> Reals::replaced_clauses(const Fraction& f, std::uint32_t level,
                                                       Ix with) {
  const bool whole = atoms_[f.over.begin()->first.begin()->first].kind == Atom::Kind::whole_clauses;
  Clauses out;
  for (const auto& clause : clauses_of(f)) {
    std::set<FractionId> literals;
    for (FractionId literal : clause) {
      const auto part = replaced(Fraction(fractions_[literal]), level, with);
      if (!part) return std::nullopt;
      literals.insert(intern(*part));
    }
    out.insert(std::move(literals));
  }
  absorb(out);
  return of_clauses(std::move(out), whole);
}

std::optional<Reals::Fraction> Reals::replaced_sum(const Atom& sum, std::uint32_t level, Ix with) {
  Indices indices;
  const auto body = opened(sum, indices);
  if (!body) return std::nullopt;
  const auto changed = replaced(*body, level, with);
  if (!changed) return std::nullopt;
  return sum_over(std::move(indices), *changed);
}

/// Returns a sum's body with fresh names for its indices.
std::optional<Reals::Fraction> Reals::opened(const Atom& sum, Indices& indices) {
  Fraction body = fractions_[sum.args[0]];
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

/// Returns a lambda of a body with one index, named canonically.
Reals::Fraction Reals::bound(const std::string& name, const Fraction& body, std::uint32_t level,
                             Ix extent) {
  const std::uint32_t canonical = std::max(kBound - 1, height(body)) + 1;
  if (canonical < kLoose)
    if (const auto named = replaced(body, level, integers_.variable(canonical, extent)))
      return atom({name, {intern(*named)}, canonical, {extent}, false});
  return atom({name, {intern(body)}, level, {extent}, false});
}

// ---- sums

/// Applies linearity: moves factors without the index out of the sum.
Reals::Fraction Reals::sum(const Fraction& body, std::uint32_t level, Ix extent) {
  if (integers_.number(extent) == 1 && !depends(body, level)) return body;
  if (depends(body.under, level)) return bound("sum of fractions", body, level, extent);
  return sum_over({{level, extent}}, body);
}

/// Requires that no denominator in `body` contains an index.
Reals::Fraction Reals::sum_over(Indices indices, const Fraction& body) {
  if (indices.size() > kMostIndices + 3) throw_too_large();
  Fraction out = number(0);
  for (const auto& [monomial, factor] : body.over)
    out = add(out, multiply(number(factor), sum_of_product(indices, monomial)));
  return multiply(out, inverse({body.under, number(1).over}));
}

Reals::Fraction Reals::product_of(const Monomial& monomial) {
  Fraction out;
  out.over.emplace(monomial, 1);
  out.under.emplace(Monomial(), 1);
  return out;
}

Reals::Fraction Reals::sum_of_product(const Indices& indices, const Monomial& monomial) {
  const auto uses = [&](Factor factor) {
    return std::any_of(indices.begin(), indices.end(),
                       [&](const Index& i) { return depends(factor, i.level); });
  };
  // Nested sums merge into one.
  for (const auto& [factor, power] : monomial) {
    if (power < 1 || atoms_[factor].kind != Atom::Kind::sum || !uses(factor)) continue;
    Indices more = indices;
    const auto inner = opened(Atom(atoms_[factor]), more);
    if (!inner) continue;
    Monomial rest = monomial;
    if (--rest[factor] == 0) rest.erase(factor);
    return sum_over(std::move(more), multiply(product_of(rest), *inner));
  }
  // Factors that share no index become separate sums.
  std::vector<std::size_t> part(indices.size());
  std::iota(part.begin(), part.end(), std::size_t{0});
  for (const auto& [factor, power] : monomial) {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (!depends(factor, indices[i].level)) continue;
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
    while (i < indices.size() && !depends(factor, indices[i].level)) ++i;
    (i == indices.size() ? outside : parts[part[i]].second).emplace(factor, power);
  }
  out = product_of(outside);
  for (const auto& [id, own] : parts) {
    const auto& [of, inside] = own;
    if (inside.empty()) {
      for (const Index& index : of) out = multiply(out, extent_of(index.extent));
    } else {
      out = multiply(out, tied_sum(of, inside));
    }
  }
  return out;
}

void Reals::collect_divisors(Factor factor, std::uint32_t level, std::set<Ix>& out) {
  spend(8);
  const Atom a = atoms_[factor];
  for (Ix ix : a.at) integers_.divisors(ix, level, out);
  for (FractionId arg : a.args) {
    if (arg == kClause) continue;
    const Fraction f = fractions_[arg];
    for (const Polynomial* p : {&f.over, &f.under})
      for (const auto& [monomial, number] : *p)
        for (const auto& [inner, power] : monomial) collect_divisors(inner, level, out);
  }
}

/// Splits an index that is read through quotients into two digits, and merges two that are read as
/// one number.
std::optional<Reals::Fraction> Reals::renumbered(const Indices& indices, const Monomial& product) {
  const Fraction body = product_of(product);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::set<Ix> divisors;
    for (const auto& [factor, power] : product)
      collect_divisors(factor, indices[i].level, divisors);
    for (Ix by : divisors) {
      const auto high = integers_.whole_quotient(indices[i].extent, by);
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
      if (!changed || depends(*changed, indices[i].level)) continue;
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
Reals::Fraction Reals::tied_sum(const Indices& indices, const Monomial& product) {
  if (auto other = renumbered(indices, product)) return *other;
  const Fraction body = product_of(product);
  const std::uint32_t first = std::max(kBound - 1, height(body)) + 1;
  if (indices.size() > kMostIndices || first + indices.size() >= kLoose) throw_too_large();
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
    if (!named || named->over.size() != 1) break;
    std::pair key(extents, named->over.begin()->first);
    if (least && *least <= key) continue;
    least = std::move(key);
    best = Atom{"", {intern(*named)}, first, extents, false, Atom::Kind::sum};
  } while (std::next_permutation(order.begin(), order.end()));
  if (best) return atom(*best);
  // An index read from a tensor keeps its names.
  Fraction out = body;
  for (auto index = indices.rbegin(); index != indices.rend(); ++index)
    out = atom({"sum of values", {intern(out)}, index->level, {index->extent}, false});
  return out;
}

/// Converts a sum of booleans: true if their integer sum is positive.
Reals::Fraction Reals::any_of(const Term& term) {
  const auto single = [&](const Fraction& f) -> const Atom* {
    if (f.over.size() != 1 || f.under != number(1).under || f.over.begin()->second != 1)
      return nullptr;
    const Monomial& monomial = f.over.begin()->first;
    return monomial.size() == 1 ? &atoms_[monomial.begin()->first] : nullptr;
  };
  Fraction body = of(term.args[0]);
  if (const Atom* inner = single(body); inner != nullptr && inner->kind == Atom::Kind::any)
    body = Fraction(fractions_[inner->args[0]]);
  const Fraction out = sum(body, term.level, term.at[0]);
  if (const auto known = constant(out)) return number(*known > 0 ? 1 : 0);
  if (const Atom* one = single(out); one != nullptr && one->boolean) return out;
  return function(Atom::Kind::any, {intern(out)}, true);
}

Reals::Fraction Reals::reduce(const Term& term) {
  const Ix extent = term.at[0];
  if (term.dtype == DType::b8 && among(term.function, {Function::sum, Function::ranks}))
    return any_of(term);
  if (laws_ == Laws::bits || term.dtype == DType::b8) {
    std::vector<FractionId> args;
    for (TermId arg : term.args) args.push_back(intern(value(arg)));
    if (term.function == Function::dot) std::sort(args.begin(), args.end());
    std::string of_dtype = std::string(name(term.dtype));
    for (TermId arg : term.args) of_dtype += " " + std::string(name(terms_[arg].dtype));
    return bound(fmt::format("{} {}", name(term.function), of_dtype), function("operands", args),
                 term.level, extent);
  }
  Fraction body = value(term.args[0]);
  if (term.function == Function::dot) body = multiply(body, value(term.args[1]));
  if (among(term.function, {Function::sum, Function::dot, Function::ranks}))
    return sum(body, term.level, extent);
  if (term.function == Function::mean)
    return multiply(sum(body, term.level, extent), inverse(extent_of(extent)));
  if (among(term.function, {Function::amax, Function::amin})) {
    if (!depends(body, term.level)) return body;
    const Rational sign = term.function == Function::amax ? 1 : -1;
    body = multiply(number(sign), body);
    const Rational scale = pw::abs(lead(body));
    return multiply(number(sign * scale),
                    bound("amax", multiply(number(1 / scale), body), term.level, extent));
  }
  return bound(std::string(name(term.function)), body, term.level, extent);
}

}  // namespace pw::proof
