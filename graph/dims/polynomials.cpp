// Sums and products are sorted merges, O(t log t) for t terms. The limits below bound the terms of
// a polynomial and the size of an atom. An overflow gives an invalid id, never a wrong number.
// Monomials are sorted by atom and polynomials by monomial, with merged powers and no zero
// coefficient. Equal polynomials over equal atoms are therefore stored once. Example: (n + 1) * m
// and m + n * m are one id.
#include "graph/dims/polynomials.hpp"

#include <algorithm>

namespace pw {
namespace {

constexpr std::size_t kMaxTerms = 256;   // of one polynomial
constexpr std::uint32_t kMaxPower = 64;  // of one symbol: 2 to the power of 64 is not an extent
// Most atoms of a quotient when written out. Dims share their parts, but texts and walks repeat
// them.
constexpr int kMaxWritten = 1024;

}  // namespace

Polynomials::Polynomials(Strings& strings) : strings_(strings) {}

Polynomials::Polynomials(const Polynomials& other, Strings& strings)
    : strings_(strings),
      dims_(other.dims_),
      index_(other.index_),
      atoms_(other.atoms_),
      atom_ids_(other.atom_ids_) {}

/// Interns by content: an id is an index, and ids are never reused.
DimId Polynomials::intern(Polynomial p) {
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

DimId Polynomials::intern_checked(Terms terms) {
  std::erase_if(terms, [](const auto& term) { return term.second == 0; });
  if (terms.size() > kMaxTerms) return {};
  return intern(Polynomial(terms.begin(), terms.end()));
}

AtomId Polynomials::intern_atom(const Atom& a) {
  auto [it, fresh] = atom_ids_.try_emplace(a);
  if (fresh) it->second = atoms_.push_back(a);
  return it->second;
}

DimId Polynomials::constant(std::int64_t value) {
  if (value == 0) return intern({});
  return intern({{Monomial{}, value}});
}

DimId Polynomials::symbol(std::string_view name) {
  AtomId id = intern_atom({Atom::Kind::symbol, strings_.intern(name), {}, {}});
  return intern({{Monomial{{id, 1}}, 1}});
}

/// Counts the atoms of the written text with repetitions, because nested quotients that share parts
/// can double their text at each level.
DimId Polynomials::of_atom(Atom::Kind kind, DimId a, DimId b) {
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
  const AtomId id = intern_atom({kind, {}, a, b});
  return intern({{Monomial{{id, 1}}, 1}});
}

/// Adds two polynomials by merging their terms. Constants, the most frequent operands, are added
/// directly.
DimId Polynomials::add(DimId a, DimId b) {
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

DimId Polynomials::sub(DimId a, DimId b) { return add(a, mul(b, constant(-1))); }

/// On false, `to` may hold some of the terms; callers then discard it.
bool Polynomials::add_product(Terms& to, const Polynomial& p, const Monomial& by,
                              std::int64_t times) {
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

/// The first limit bounds the work of the expansion, the second one (intern_checked) its result.
DimId Polynomials::mul(DimId a, DimId b) {
  if (!a || !b) return {};
  if (dims_[a].size() * dims_[b].size() > kMaxTerms * 4) return {};
  Terms terms;
  for (const auto& [m, c] : dims_[a])
    if (!add_product(terms, dims_[b], m, c)) return {};
  return intern_checked(std::move(terms));
}

const Polynomials::Atom* Polynomials::only_atom(DimId id) const {
  const Polynomial& p = dims_[id];
  if (p.size() != 1 || p.front().second != 1 || p.front().first.size() != 1 ||
      p.front().first.front().second != 1)
    return nullptr;
  return &atoms_[p.front().first.front().first];
}

std::optional<std::int64_t> Polynomials::value(DimId id) const {
  if (!id) return std::nullopt;
  const Polynomial& p = dims_[id];
  if (p.empty()) return 0;
  if (p.size() == 1 && p.front().first.empty()) return p.front().second;
  return std::nullopt;
}

bool Polynomials::is_symbol(DimId id) const {
  if (!id) return false;
  const Polynomial& p = dims_[id];
  return p.size() == 1 && p.front().second == 1 && p.front().first.size() == 1 &&
         p.front().first.front().second == 1 &&
         atoms_[p.front().first.front().first].kind == Atom::Kind::symbol;
}

/// Writes a power as repeated factors, which the grammar of dims reads back.
std::string Polynomials::text(const Monomial& m) const {
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

std::string Polynomials::print(DimId id) const {
  if (!id) return "<overflow>";
  const Polynomial& p = dims_[id];
  if (p.empty()) return "0";
  std::string out;
  for (auto it = p.rbegin(); it != p.rend(); ++it) {  // the constant comes last
    const auto& [m, c] = *it;
    bool negative = c < 0;
    std::string sign = out.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    std::string number = negative ? std::to_string(c).substr(1) : std::to_string(c);
    std::string monomial = text(m);
    out += sign + (m.empty() ? number : number == "1" ? monomial : number + "*" + monomial);
  }
  return out;
}

/// Includes symbols inside quotients, remainders, maxima, and minima.
std::vector<std::string> Polynomials::symbols(DimId id) const {
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

}  // namespace pw
