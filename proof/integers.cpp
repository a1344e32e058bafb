// Decides p ≥ 0 for integer polynomials over sizes, indices, and floor quotients. The problem is
// undecidable in general (Hilbert's tenth problem), so the search is incomplete, bounded in depth
// and steps, and sound: true is a proof, false means unknown. Polynomials are hash-consed in normal
// form. The search combines four rules: the signs of the terms after each size s is written as 1 +
// s', a fact or quotient bound times a nonnegative factor, the extremes of an index in which p is
// linear, and an SMT solver. Samples refute most false goals before any search
// (integers_numbers.cpp). Invariant: after an overflow of 64 bits nothing is proved.
#include "proof/integers.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "proof/index_levels.hpp"

namespace pw::proof {
namespace {

constexpr int kDeepest = 6;
constexpr std::size_t kMostSteps = 400;  // limit of one search

/// Parses the output of Dims::print.
class DimReader {
 public:
  DimReader(Integers& integers, std::string text) : integers_(integers), text_(std::move(text)) {}

  Ix sum() {
    Ix out = product();
    for (skip(); at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-'); skip()) {
      const bool plus = text_[at_++] == '+';
      const Ix next = product();
      out = plus ? integers_.add(out, next) : integers_.sub(out, next);
    }
    return out;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Ix product() {
    Ix out = power();
    for (skip(); at_ < text_.size(); skip()) {
      if (take('*')) {
        out = integers_.mul(out, power());
      } else if (take('/')) {
        take('/');
        out = integers_.div(out, power());
      } else if (take('%')) {
        out = integers_.mod(out, power());
      } else {
        break;
      }
    }
    return out;
  }
  Ix power() {
    const Ix base = atom();
    Ix out = base;
    if (take('^'))
      for (std::int64_t n = digits(); n > 1; --n) out = integers_.mul(out, base);
    return out;
  }
  std::int64_t digits() {
    skip();
    std::int64_t value = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0)
      value = value * 10 + (text_[at_++] - '0');
    return value;
  }
  Ix atom() {
    skip();
    if (take('-')) return integers_.sub(integers_.constant(0), power());
    if (take('(')) {
      const Ix out = sum();
      take(')');
      return out;
    }
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0)
      return integers_.constant(digits());
    std::string name;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_' ||
            text_[at_] == '\'' || text_[at_] == '#' || text_[at_] == '.'))
      name += text_[at_++];
    if (name.empty()) ++at_;
    if (at_ < text_.size() && text_[at_] == '(') {
      const std::size_t from = at_;
      if (const auto known = extreme(name == "max")) return *known;
      at_ = from;  // unknown choice: any number
      for (int open = 0; at_ < text_.size();) {
        open += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
        ++at_;
        if (open == 0) break;
      }
      name += text_.substr(from, at_ - from);
      integers_.free(name);
    }
    return integers_.symbol(name);
  }

  /// Returns the largest or smallest of a list, if that is decided.
  std::optional<Ix> extreme(bool largest) {
    std::optional<Ix> best;
    ++at_;
    do {
      const Ix next = sum();
      const Ix more = best ? integers_.sub(next, *best) : next;
      if (!best) {
        best = next;
      } else if (integers_.nonnegative(more)) {
        if (largest) best = next;
      } else if (integers_.nonnegative(integers_.sub(*best, next))) {
        if (!largest) best = next;
      } else {
        return std::nullopt;
      }
    } while (take(','));
    return take(')') ? best : std::nullopt;
  }

  Integers& integers_;
  std::string text_;
  std::size_t at_ = 0;
};

}  // namespace

Ix Integers::intern(std::map<Monomial, std::int64_t> terms) {
  Polynomial p;
  p.reserve(terms.size());
  for (auto& [monomial, factor] : terms)
    if (factor != 0) p.emplace_back(monomial, factor);
  const auto found = ids_.find(p);
  if (found != ids_.end()) return found->second;
  const Ix id(polynomials_.size());
  ids_.emplace(p, id);
  polynomials_.push_back(std::move(p));
  return id;
}

std::size_t Integers::PolynomialHash::operator()(const Polynomial& p) const {
  std::uint64_t out = p.size();
  for (const auto& [monomial, factor] : p) {
    out = combine(out, static_cast<std::uint64_t>(factor));
    for (AtomNumber atom : monomial) out = combine(out, atom);
  }
  return out;
}

Ix Integers::of_atom(Atom atom) {
  const auto [found, fresh] = atom_ids_.emplace(atom, static_cast<AtomNumber>(atoms_.size()));
  if (fresh) atoms_.push_back(std::move(atom));
  return intern({{{found->second}, 1}});
}

Ix Integers::of_monomial(const Monomial& monomial, std::int64_t factor) {
  return intern({{monomial, factor}});
}

Ix Integers::constant(std::int64_t value) { return intern({{{}, value}}); }
Ix Integers::symbol(std::string_view name) {
  return of_atom({Atom::Kind::symbol, std::string(name), 0, {}, {}});
}
Ix Integers::variable(std::uint32_t level, Ix extent) {
  if (number(extent) == 1) return constant(0);
  return of_atom({Atom::Kind::variable, "", level, extent, {}});
}
Ix Integers::value(std::uint32_t term) { return of_atom({Atom::Kind::value, "", term, {}, {}}); }

Ix Integers::add(Ix a, Ix b) {
  std::map<Monomial, std::int64_t> terms;
  for (Ix part : {a, b})
    for (const auto& [monomial, factor] : polynomials_[part.index])
      if (__builtin_add_overflow(terms[monomial], factor, &terms[monomial])) overflowed_ = true;
  return intern(std::move(terms));
}

Ix Integers::sub(Ix a, Ix b) { return add(a, mul(constant(-1), b)); }

Ix Integers::mul(Ix a, Ix b) {
  std::map<Monomial, std::int64_t> terms;
  for (const auto& [m, f] : polynomials_[a.index]) {
    for (const auto& [n, g] : polynomials_[b.index]) {
      Monomial both;
      std::merge(m.begin(), m.end(), n.begin(), n.end(), std::back_inserter(both));
      std::int64_t product = 0;
      if (__builtin_mul_overflow(f, g, &product) ||
          __builtin_add_overflow(terms[both], product, &terms[both]))
        overflowed_ = true;
    }
  }
  return intern(std::move(terms));
}

/// Returns a / b if each term of b's product divides each term of a.
std::optional<Ix> Integers::exact(Ix a, Ix b) {
  const auto [quotient, rest] = split(a, b);
  if (rest != constant(0)) return std::nullopt;
  return quotient;
}

/// Divides polynomials: a = quotient * b + rest.
std::pair<Ix, Ix> Integers::split(Ix a, Ix b) {
  const Polynomial divisor = polynomials_[b.index];
  if (divisor.empty()) return {constant(0), a};
  // The divisor's greatest term leads; of several terms all must follow it.
  const auto& [lead, lead_factor] =
      *std::max_element(divisor.begin(), divisor.end(), [](const auto& x, const auto& y) {
        return std::pair(x.first.size(), x.first) < std::pair(y.first.size(), y.first);
      });
  Ix quotient = constant(0), rest = a;
  const Polynomial terms = polynomials_[a.index];
  for (const auto& [monomial, factor] : terms) {
    if (factor % lead_factor != 0 ||
        !std::includes(monomial.begin(), monomial.end(), lead.begin(), lead.end()))
      continue;
    Monomial left;
    std::set_difference(monomial.begin(), monomial.end(), lead.begin(), lead.end(),
                        std::back_inserter(left));
    const Ix part = of_monomial(left, factor / lead_factor);
    const Ix less = sub(rest, mul(part, b));
    if (divisor.size() > 1 &&
        polynomials_[less.index].size() + divisor.size() > polynomials_[rest.index].size() + 1)
      continue;
    quotient = add(quotient, part);
    rest = less;
  }
  return {quotient, rest};
}

Ix Integers::div(Ix a, Ix b) {
  const Ix one = constant(1), zero_ = constant(0);
  if (b == one || a == zero_) return a;
  const auto x = number(a), y = number(b);
  if (x && y && *y > 0) return constant(*x >= 0 ? *x / *y : -((-*x + *y - 1) / *y));
  const auto cached = quotients_.find({a, b});
  if (cached != quotients_.end()) return cached->second;
  const bool positive = nonnegative(sub(b, one));
  auto [quotient, rest] = positive ? split(a, b) : std::pair(zero_, a);
  if (positive) {
    for (int i = 0; i < 3 && rest != zero_ && nonnegative(sub(rest, b)); ++i) {
      rest = sub(rest, b);
      quotient = add(quotient, one);
    }
    for (int i = 0; i < 3 && rest != zero_ && nonnegative(sub(constant(-1), rest)); ++i) {
      rest = add(rest, b);
      quotient = sub(quotient, one);
    }
  }
  Ix left = zero_;
  if (rest != zero_ && !(positive && nonnegative(rest) && nonnegative(sub(sub(b, one), rest)))) {
    const Polynomial divisor = polynomials_[b.index];
    bool done = false;
    // b = f * c and rest = f * r + s with 0 <= s < f: rest / b = r / c.
    if (positive && divisor.size() == 1) {
      std::vector<Ix> factors;
      for (AtomNumber atom : divisor[0].first) factors.push_back(of_monomial({atom}, 1));
      if (divisor[0].second > 1) factors.push_back(constant(divisor[0].second));
      for (std::size_t i = 0; i < factors.size() && factors.size() > 1 && !done; ++i) {
        const auto [r, s] = split(rest, factors[i]);
        if (r == zero_ ||
            !(s == zero_ || (nonnegative(s) && nonnegative(sub(sub(factors[i], one), s)))))
          continue;
        left = div(r, *exact(b, factors[i]));
        done = true;
      }
    }
    if (!done) {
      const Polynomial terms = polynomials_[rest.index];
      const Atom* inner = terms.size() == 1 && terms[0].second == 1 && terms[0].first.size() == 1
                              ? &atoms_[terms[0].first[0]]
                              : nullptr;
      if (inner != nullptr && inner->kind == Atom::Kind::quotient && positive)
        left = div(inner->a, mul(Ix(inner->b), b));
      else
        left = of_atom({Atom::Kind::quotient, "", 0, rest, b});
    }
  }
  const Ix out = add(quotient, left);
  quotients_.emplace(std::pair(a, b), out);
  return out;
}

Ix Integers::mod(Ix a, Ix b) { return sub(a, mul(b, div(a, b))); }

Ix Integers::of(const Dims& dims, DimId dim) {
  if (const auto value = dims.value(dim)) return constant(*value);
  const auto found = dims_.find(dim);
  if (found != dims_.end()) return found->second;
  const Ix out = DimReader(*this, dims.print(dim)).sum();
  dims_.emplace(dim, out);
  return out;
}

void Integers::assume(Ix fact) {
  facts_.push_back(fact);
  fits_.clear();
  known_.clear();
  quotients_.clear();
  dims_.clear();
}

void Integers::back_to(Mark mark) {
  if (facts_.size() == mark.facts) return;
  facts_.resize(mark.facts);
  fits_.clear();
  known_.clear();
  quotients_.clear();
  dims_.clear();
}

Ix Integers::substituted(Ix p, std::uint32_t level, Ix with) {
  if (!mentions(p, level)) return p;
  Ix out = constant(0);
  for (const auto& [monomial, factor] : Polynomial(polynomials_[p.index])) {
    Ix product = constant(factor);
    for (AtomNumber number : monomial) {
      const Atom atom = atoms_[number];
      Ix part = of_monomial({number}, 1);
      if (atom.kind == Atom::Kind::variable && atom.number == level) part = with;
      if (atom.kind == Atom::Kind::quotient)
        part = div(substituted(atom.a, level, with), substituted(atom.b, level, with));
      product = mul(product, part);
    }
    out = add(out, product);
  }
  return out;
}

void Integers::divisors(Ix p, std::uint32_t level, std::set<Ix>& out) {
  std::set<AtomNumber> atoms;
  mention(p, atoms);
  for (AtomNumber number : atoms) {
    const Atom atom = atoms_[number];
    if (atom.kind != Atom::Kind::quotient) continue;
    const Polynomial& over = polynomials_[atom.a.index];
    const bool alone = over.size() == 1 && over[0].second == 1 && over[0].first.size() == 1;
    if (!alone) continue;
    const Atom& inner = atoms_[over[0].first[0]];
    if (inner.kind == Atom::Kind::variable && inner.number == level) out.insert(atom.b);
  }
}

std::optional<std::int64_t> Integers::number(Ix p) const {
  const Polynomial& terms = polynomials_[p.index];
  if (terms.empty()) return 0;
  if (terms.size() == 1 && terms[0].first.empty()) return terms[0].second;
  return std::nullopt;
}

std::optional<std::pair<std::string, Ix>> Integers::solve(Ix p) {
  std::int64_t shared = 0;
  for (const auto& [monomial, factor] : polynomials_[p.index]) shared = std::gcd(shared, factor);
  if (shared > 1) p = *exact(p, constant(shared));
  const Polynomial terms = polynomials_[p.index];
  for (auto term = terms.rbegin(); term != terms.rend(); ++term) {
    const auto& [monomial, factor] = *term;
    if (monomial.size() != 1 || (factor != 1 && factor != -1)) continue;
    const Atom& atom = atoms_[monomial[0]];
    if (atom.kind != Atom::Kind::symbol) continue;
    const Ix rest = sub(p, of_monomial(monomial, factor));
    std::set<AtomNumber> others;
    mention(rest, others);
    if (others.contains(monomial[0])) continue;
    return std::pair(atom.name, factor == 1 ? negated(rest) : rest);
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> Integers::symbols_of(Ix p) const {
  const Polynomial& terms = polynomials_[p.index];
  if (terms.size() != 1) return std::nullopt;
  std::vector<std::string> out;
  for (AtomNumber atom : terms[0].first) {
    if (atoms_[atom].kind != Atom::Kind::symbol) return std::nullopt;
    out.push_back(atoms_[atom].name);
  }
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) return std::nullopt;
  return out;
}

std::optional<Integers::Line> Integers::line(Ix p, std::uint32_t level) {
  Ix factor = constant(0), rest = constant(0);
  const Polynomial terms = polynomials_[p.index];
  for (const auto& [monomial, f] : terms) {
    Monomial others;
    int powers = 0;
    for (AtomNumber atom : monomial) {
      const bool own = atoms_[atom].kind == Atom::Kind::variable && atoms_[atom].number == level;
      if (own)
        ++powers;
      else
        others.push_back(atom);
    }
    const Ix part = of_monomial(others, f);
    if (powers > 1 || mentions(part, level)) return std::nullopt;
    (powers == 1 ? factor : rest) = add(powers == 1 ? factor : rest, part);
  }
  return Line{factor, rest};
}

void Integers::mention(Ix p, std::set<AtomNumber>& out) const {
  for (const auto& [monomial, factor] : polynomials_[p.index]) {
    for (AtomNumber atom : monomial) {
      if (!out.insert(atom).second) continue;
      if (atoms_[atom].kind != Atom::Kind::quotient) continue;
      mention(atoms_[atom].a, out);
      mention(atoms_[atom].b, out);
    }
  }
}

bool Integers::mentions(Ix p, std::uint32_t level) const {
  std::set<AtomNumber> atoms;
  mention(p, atoms);
  return std::any_of(atoms.begin(), atoms.end(), [&](AtomNumber atom) {
    return atoms_[atom].kind == Atom::Kind::variable && atoms_[atom].number == level;
  });
}

void Integers::collect_values(Ix p, std::set<std::uint32_t>& out) const {
  std::set<AtomNumber> atoms;
  mention(p, atoms);
  for (AtomNumber atom : atoms)
    if (atoms_[atom].kind == Atom::Kind::value) out.insert(atoms_[atom].number);
}

void Integers::collect_levels(Ix p, std::set<std::uint32_t>& out) const {
  std::set<AtomNumber> atoms;
  mention(p, atoms);
  for (AtomNumber atom : atoms)
    if (atoms_[atom].kind == Atom::Kind::variable) out.insert(atoms_[atom].number);
}

std::pair<Ix, Ix> Integers::reduced(Ix a, Ix b) {
  for (bool again = true; again;) {
    again = false;
    if (polynomials_[a.index].empty() || polynomials_[b.index].empty()) break;
    for (AtomNumber atom : Monomial(polynomials_[a.index][0].first)) {
      const Ix factor = of_monomial({atom}, 1);
      const auto x = exact(a, factor), y = exact(b, factor);
      if (!x || !y) continue;
      a = *x;
      b = *y;
      again = true;
      break;
    }
  }
  return {a, b};
}

bool Integers::nonnegative(Ix p) {
  if (overflowed_) return false;
  if (const auto value = number(p); value && *value >= 0) return true;
  const auto cached = known_.find(p);
  if (cached != known_.end()) return cached->second;
  steps_ = 0;
  const bool out = !refuted_by_samples(p) && (search(p, 0) || by_solver(p));
  known_.emplace(p, out);
  return out;
}

bool Integers::search(Ix p, int depth) {
  if (const auto value = number(p)) {
    if (*value >= 0) return true;
    if (depth > 0) return false;
  }
  if (depth > kDeepest || ++steps_ > kMostSteps || (depth > 0 && refuted_by_samples(p)))
    return false;
  if (!open_.insert(p).second) return false;
  const bool out = by_signs(p) || by_extremes(p, depth) || by_facts(p, depth);
  open_.erase(p);
  return out;
}

bool Integers::at_least_zero(AtomNumber number, int depth) {
  const Atom atom = atoms_[number];
  switch (atom.kind) {
    case Atom::Kind::symbol: return !free_.contains(atom.name);
    case Atom::Kind::variable: return true;
    case Atom::Kind::value: return false;
    case Atom::Kind::quotient:
      return search(atom.a, depth + 1) && search(sub(atom.b, constant(1)), depth + 1);
  }
  return false;
}

/// Substitutes 1 + s' for each size s, with s' ≥ 0, and requires all terms to be nonnegative.
bool Integers::by_signs(Ix p) {
  Polynomial terms = polynomials_[p.index];
  std::set<AtomNumber> sizes;
  for (const auto& [monomial, factor] : terms) {
    for (AtomNumber atom : monomial) {
      const Atom& a = atoms_[atom];
      if (a.kind == Atom::Kind::symbol && !free_.contains(a.name)) sizes.insert(atom);
    }
  }
  std::map<Monomial, std::int64_t> sums;
  for (const auto& [monomial, factor] : terms) {
    // The product of (1 + s) over the sizes s in it.
    std::vector<Monomial> parts = {{}};
    if (monomial.size() > 8) return false;
    for (AtomNumber atom : monomial) {
      std::vector<Monomial> next;
      for (const Monomial& part : parts) {
        if (sizes.contains(atom)) next.push_back(part);
        next.push_back(part);
        next.back().push_back(atom);
      }
      parts = std::move(next);
    }
    for (const Monomial& part : parts) sums[part] += factor;
  }
  return std::all_of(sums.begin(), sums.end(), [&](const auto& term) {
    return term.second == 0 || (term.second > 0 && std::all_of(term.first.begin(), term.first.end(),
                                                               [&](AtomNumber atom) {
                                                                 return at_least_zero(atom, 3);
                                                               }));
  });
}

bool Integers::by_fact(Ix p, Ix fact, int depth) {
  const Polynomial goal = polynomials_[p.index], known = polynomials_[fact.index];
  std::set<Ix> tried;
  for (const auto& [m, f] : known) {
    for (const auto& [n, g] : goal) {
      if ((f > 0) != (g > 0) || !std::includes(n.begin(), n.end(), m.begin(), m.end())) continue;
      Monomial left;
      std::set_difference(n.begin(), n.end(), m.begin(), m.end(), std::back_inserter(left));
      if (!std::all_of(left.begin(), left.end(),
                       [&](AtomNumber atom) { return at_least_zero(atom, depth + 1); }))
        continue;
      const std::int64_t times = std::max<std::int64_t>(1, g / f);
      const Ix rest = sub(p, mul(of_monomial(left, times), fact));
      if (polynomials_[rest.index].size() > goal.size() + 1 || !tried.insert(rest).second) continue;
      if (search(rest, depth + 1)) return true;
    }
  }
  return false;
}

bool Integers::by_facts(Ix p, int depth) {
  for (std::size_t i = facts_.size(); i > 0; --i) {
    if (!by_fact(p, facts_[i - 1], depth)) continue;
    used_.insert(i - 1);
    return true;
  }
  std::set<AtomNumber> atoms;
  for (const auto& [monomial, factor] : polynomials_[p.index])
    atoms.insert(monomial.begin(), monomial.end());
  for (AtomNumber number : atoms) {
    const Atom atom = atoms_[number];
    if (atom.kind != Atom::Kind::quotient) continue;
    const Ix low = sub(atom.a, mul(atom.b, of_monomial({number}, 1)));
    if (!search(sub(atom.b, constant(1)), depth + 1)) continue;
    if (by_fact(p, low, depth) || by_fact(p, sub(sub(atom.b, constant(1)), low), depth))
      return true;
  }
  return false;
}

/// Substitutes for an index, in which p is linear, the end at which p is least.
bool Integers::by_extremes(Ix p, int depth) {
  std::set<AtomNumber> atoms;
  for (const auto& [monomial, factor] : polynomials_[p.index])
    atoms.insert(monomial.begin(), monomial.end());
  for (AtomNumber number : atoms) {
    const Atom atom = atoms_[number];
    if (atom.kind != Atom::Kind::variable) continue;
    Ix factor = constant(0), rest = constant(0);
    bool plain = true;
    for (const auto& [monomial, f] : Polynomial(polynomials_[p.index])) {
      const auto powers = std::count(monomial.begin(), monomial.end(), number);
      plain = plain && powers <= 1;
      Monomial others;
      for (AtomNumber other : monomial)
        if (other != number) others.push_back(other);
      Ix& sum = powers == 0 ? rest : factor;
      sum = add(sum, of_monomial(others, f));
    }
    if (!plain) continue;
    if (search(factor, depth + 1) && search(rest, depth + 1)) return true;
    if (search(negated(factor), depth + 1) &&
        search(add(rest, mul(factor, sub(atom.a, constant(1)))), depth + 1))
      return true;
  }
  return false;
}

SolverTerm Integers::encode(Ix p) {
  SolverTerm out;
  for (const auto& [monomial, factor] : polynomials_[p.index]) {
    SolverTerm::Product product{factor, {}};
    for (AtomNumber atom : monomial) product.unknowns.push_back(fmt::format("a{}", atom));
    out.products.push_back(std::move(product));
  }
  return out;
}

/// Queries the solver with the facts and the bounds of every atom that they or p contain.
bool Integers::by_solver(Ix p) {
  if (!Solver::present() || facts_.empty()) return false;
  std::set<AtomNumber> atoms;
  mention(p, atoms);
  std::vector<SolverTerm> facts;
  std::set<AtomNumber> fact_atoms;
  for (Ix fact : facts_) {
    mention(fact, fact_atoms);
    facts.push_back(encode(fact));
  }
  const bool related =
      std::any_of(atoms.begin(), atoms.end(), [&](AtomNumber a) { return fact_atoms.contains(a); });
  if (!related && !number(p)) return false;
  atoms.insert(fact_atoms.begin(), fact_atoms.end());
  for (bool more = true; more;) {
    const std::size_t before = atoms.size();
    for (AtomNumber a : std::set(atoms)) {
      const Atom& atom = atoms_[a];
      if (atom.kind == Atom::Kind::variable || atom.kind == Atom::Kind::quotient)
        mention(atom.a, atoms);
      if (atom.kind == Atom::Kind::quotient) mention(atom.b, atoms);
    }
    more = atoms.size() > before;
  }
  for (AtomNumber a : atoms) {
    const Atom atom = atoms_[a];
    const Ix self = of_monomial({a}, 1), one = constant(1);
    switch (atom.kind) {
      case Atom::Kind::symbol:
        if (!free_.contains(atom.name)) facts.push_back(encode(sub(self, one)));
        break;
      case Atom::Kind::variable:
        facts.push_back(encode(self));
        facts.push_back(encode(sub(sub(atom.a, one), self)));
        break;
      case Atom::Kind::quotient: {
        if (!search(sub(atom.b, one), 1)) break;
        const Ix rest = sub(atom.a, mul(atom.b, self));
        facts.push_back(encode(rest));
        facts.push_back(encode(sub(sub(atom.b, one), rest)));
        break;
      }
      case Atom::Kind::value: break;
    }
  }
  const bool proved = solver_.implies(facts, encode(p));
  for (std::size_t i = 0; proved && i < facts_.size(); ++i) used_.insert(i);
  return proved;
}

std::string Integers::print(Ix p) const {
  std::string out;
  for (const auto& [monomial, factor] : polynomials_[p.index]) {
    std::string text;
    for (AtomNumber number : monomial) {
      const Atom& atom = atoms_[number];
      std::string name;
      switch (atom.kind) {
        case Atom::Kind::symbol: name = atom.name; break;
        case Atom::Kind::variable: name = index_name(atom.number); break;
        case Atom::Kind::value: name = fmt::format("v{}", atom.number); break;
        case Atom::Kind::quotient:
          name = fmt::format("(({}) // ({}))", print(atom.a), print(atom.b));
          break;
      }
      text += (text.empty() ? "" : "*") + name;
    }
    const std::int64_t size = factor < 0 ? -factor : factor;
    if (text.empty())
      text = std::to_string(size);
    else if (size != 1)
      text = fmt::format("{}*{}", size, text);
    if (out.empty())
      out = (factor < 0 ? "-" : "") + text;
    else
      out += (factor < 0 ? " - " : " + ") + text;
  }
  return out.empty() ? "0" : out;
}

}  // namespace pw::proof
