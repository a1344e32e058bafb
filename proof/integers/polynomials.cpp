// Hash-consed integer polynomials in normal form. Invariant: monomials are sorted, coefficients are
// not 0 or the least of 64 bits, and after an overflow of 64 bits overflowed() is true.
// The normal form decides equality of polynomials without any search: equal polynomials over equal
// atoms have one id. Quotients are atoms, so relations between quotients are unknown here. Facts
// about signs belong to sign_search.cpp.
#include "proof/integers/polynomials.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/division.hpp"
#include "base/hash.hpp"
#include "proof/index_levels.hpp"

namespace pw::proof {

/// The map is sorted by monomial, which makes the order of terms canonical.
Ix IntegerPolynomials::intern(std::map<Monomial, std::int64_t> terms) {
  Polynomial p;
  p.reserve(terms.size());
  for (auto& [monomial, factor] : terms) {
    if (factor == INT64_MIN) overflowed_ = true;  // it has no absolute value
    if (factor != 0) p.emplace_back(monomial, std::max(factor, -INT64_MAX));
  }
  const auto found = ids_.find(p);
  if (found != ids_.end()) return found->second;
  const Ix id(polynomials_.size());
  ids_.emplace(p, id);
  polynomials_.push_back(std::move(p));
  return id;
}

std::size_t IntegerPolynomials::PolynomialHash::operator()(const Polynomial& p) const {
  std::uint64_t out = p.size();
  for (const auto& [monomial, factor] : p) {
    out = combine(out, static_cast<std::uint64_t>(factor));
    for (AtomNumber atom : monomial) out = combine(out, atom);
  }
  return out;
}

Ix IntegerPolynomials::of_atom(Atom atom) {
  const auto [found, fresh] = atom_ids_.emplace(atom, static_cast<AtomNumber>(atoms_.size()));
  if (fresh) atoms_.push_back(std::move(atom));
  return intern({{{found->second}, 1}});
}

Ix IntegerPolynomials::of_monomial(const Monomial& monomial, std::int64_t factor) {
  return intern({{monomial, factor}});
}

Ix IntegerPolynomials::constant(std::int64_t value) { return intern({{{}, value}}); }

Ix IntegerPolynomials::symbol(std::string_view name) {
  return of_atom({Atom::Kind::symbol, std::string(name), 0, {}, {}});
}

/// An index of extent 1 is 0, which removes axes of size 1 from every position.
Ix IntegerPolynomials::variable(std::uint32_t level, Ix extent) {
  if (number(extent) == 1) return constant(0);
  return of_atom({Atom::Kind::variable, "", level, extent, {}});
}

Ix IntegerPolynomials::value(std::uint32_t term) {
  return of_atom({Atom::Kind::value, "", term, {}, {}});
}

/// An overflow leaves a wrong coefficient, but the flag then voids every proof.
Ix IntegerPolynomials::add(Ix a, Ix b) {
  std::map<Monomial, std::int64_t> terms;
  for (Ix part : {a, b})
    for (const auto& [monomial, factor] : polynomial(part))
      if (__builtin_add_overflow(terms[monomial], factor, &terms[monomial])) overflowed_ = true;
  return intern(std::move(terms));
}

Ix IntegerPolynomials::sub(Ix a, Ix b) { return add(a, mul(constant(-1), b)); }

/// Expands the product: n terms times m terms give at most n m.
Ix IntegerPolynomials::mul(Ix a, Ix b) {
  std::map<Monomial, std::int64_t> terms;
  for (const auto& [m, f] : polynomial(a)) {
    for (const auto& [n, g] : polynomial(b)) {
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

/// Example: (2 n m + 4 n) / (2 n) is m + 2. Nothing if a remainder is left; the quotient may then
/// still be an integer for all sizes.
std::optional<Ix> IntegerPolynomials::whole_quotient(Ix a, Ix b) {
  const auto [quotient, rest] = split(a, b);
  if (rest != constant(0)) return std::nullopt;
  return quotient;
}

/// One pass over the terms of a. A term is divided if the leading term of b divides it. For
/// divisors of several terms a step must not lengthen the rest, so n² is left undivided by n + 1. a
/// = quotient * b + rest holds for every choice of steps; rest may be negative or larger than b.
std::pair<Ix, Ix> IntegerPolynomials::split(Ix a, Ix b) {
  const Polynomial divisor = polynomial(b);
  if (divisor.empty()) return {constant(0), a};
  // The divisor's greatest term leads; of several terms all must follow it.
  const auto& [lead, lead_factor] =
      *std::max_element(divisor.begin(), divisor.end(), [](const auto& x, const auto& y) {
        return std::pair(x.first.size(), x.first) < std::pair(y.first.size(), y.first);
      });
  Ix quotient = constant(0), rest = a;
  const Polynomial terms = polynomial(a);
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
        polynomial(less).size() + divisor.size() > polynomial(rest).size() + 1)
      continue;
    quotient = add(quotient, part);
    rest = less;
  }
  return {quotient, rest};
}

std::optional<std::int64_t> IntegerPolynomials::number(Ix p) const {
  const Polynomial& terms = polynomial(p);
  if (terms.empty()) return 0;
  if (terms.size() == 1 && terms[0].first.empty()) return terms[0].second;
  return std::nullopt;
}

/// Prefers the last such symbol. Example: 2 n - 2 m + 4 = 0 gives m = n + 2 or n = m - 2. A symbol
/// that also occurs inside a quotient cannot be solved for.
std::optional<std::pair<std::string, Ix>> IntegerPolynomials::solve(Ix p) {
  std::int64_t shared = 0;
  for (const auto& [monomial, factor] : polynomial(p)) shared = std::gcd(shared, factor);
  if (shared > 1) p = *whole_quotient(p, constant(shared));
  const Polynomial terms = polynomial(p);
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

/// Example: 3 n m gives n and m; n² and n + 1 give nothing.
std::optional<std::vector<std::string>> IntegerPolynomials::symbols_of(Ix p) const {
  const Polynomial& terms = polynomial(p);
  if (terms.size() != 1) return std::nullopt;
  std::vector<std::string> out;
  for (AtomNumber atom : terms[0].first) {
    if (atoms_[atom].kind != Atom::Kind::symbol) return std::nullopt;
    out.push_back(atoms_[atom].name);
  }
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) return std::nullopt;
  return out;
}

/// Example: for index i, 2 n i + m is a line; i² and (i + n) / 2 are not.
std::optional<IntegerPolynomials::Line> IntegerPolynomials::line(Ix p, std::uint32_t level) {
  Ix factor = constant(0), rest = constant(0);
  const Polynomial terms = polynomial(p);
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

/// Visits each atom once, so shared quotients cost nothing extra. Extents of variables are not
/// visited.
void IntegerPolynomials::mention(Ix p, std::set<AtomNumber>& out) const {
  for (const auto& [monomial, factor] : polynomial(p)) {
    for (AtomNumber atom : monomial) {
      if (!out.insert(atom).second) continue;
      if (atoms_[atom].kind != Atom::Kind::quotient) continue;
      mention(atoms_[atom].a, out);
      mention(atoms_[atom].b, out);
    }
  }
}

bool IntegerPolynomials::mentions(Ix p, std::uint32_t level) const {
  std::set<AtomNumber> atoms;
  mention(p, atoms);
  return std::any_of(atoms.begin(), atoms.end(), [&](AtomNumber atom) {
    return atoms_[atom].kind == Atom::Kind::variable && atoms_[atom].number == level;
  });
}

void IntegerPolynomials::collect_values(Ix p, std::set<std::uint32_t>& out) const {
  std::set<AtomNumber> atoms;
  mention(p, atoms);
  for (AtomNumber atom : atoms)
    if (atoms_[atom].kind == Atom::Kind::value) out.insert(atoms_[atom].number);
}

void IntegerPolynomials::collect_levels(Ix p, std::set<std::uint32_t>& out) const {
  std::set<AtomNumber> atoms;
  mention(p, atoms);
  for (AtomNumber atom : atoms)
    if (atoms_[atom].kind == Atom::Kind::variable) out.insert(atoms_[atom].number);
}

/// Only atoms count as factors: (n + 1) is not recognized.
std::pair<Ix, Ix> IntegerPolynomials::reduced(Ix a, Ix b) {
  for (bool again = true; again;) {
    again = false;
    if (polynomial(a).empty() || polynomial(b).empty()) break;
    for (AtomNumber atom : Monomial(polynomial(a)[0].first)) {
      const Ix factor = of_monomial({atom}, 1);
      const auto x = whole_quotient(a, factor), y = whole_quotient(b, factor);
      if (!x || !y) continue;
      a = *x;
      b = *y;
      again = true;
      break;
    }
  }
  return {a, b};
}

/// Quotients round down, as for indices. A divisor below 1 has no value, because sizes are at least
/// 1.
std::optional<std::int64_t> IntegerPolynomials::evaluate(Ix p, const Assign& assign) const {
  const auto number_of = [&](const Atom& atom) -> std::optional<std::int64_t> {
    using Kind = Unknown::Kind;
    switch (atom.kind) {
      case Atom::Kind::symbol: return assign({Kind::symbol, atom.name, 0, {}, is_free(atom.name)});
      case Atom::Kind::variable: return assign({Kind::variable, "", atom.number, atom.a, false});
      case Atom::Kind::value: return assign({Kind::value, "", atom.number, {}, false});
      case Atom::Kind::quotient: break;
    }
    const auto a = evaluate(atom.a, assign), b = evaluate(atom.b, assign);
    if (!a || !b || *b <= 0) return std::nullopt;
    return floor_div(*a, *b);
  };
  std::int64_t sum = 0;
  for (const auto& [monomial, factor] : polynomial(p)) {
    std::int64_t product = factor;
    for (AtomNumber number : monomial) {
      const auto value = number_of(atoms_[number]);
      if (!value || __builtin_mul_overflow(product, *value, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

std::string IntegerPolynomials::print(Ix p) const {
  std::string out;
  for (const auto& [monomial, factor] : polynomial(p)) {
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
