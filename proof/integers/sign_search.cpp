// Decides p ≥ 0 for integer polynomials over sizes, indices, and floor quotients. The problem is
// undecidable in general (Hilbert's tenth problem), so the search is incomplete, bounded in depth
// and steps, and sound: true is a proof, false means unknown. The search combines four rules: the
// signs of the terms after each size s is written as 1 + s', a fact or quotient bound times a
// nonnegative factor, the extremes of an index in which p is linear, and an SMT solver. Samples
// refute most false goals before any search. Invariant: after an overflow of 64 bits nothing is
// proved.
// Example: n m - n ≥ 0 by signs, as (1 + n')(1 + m') - (1 + n') is m' + n' m'. n - 1 - i ≥ 0 for an
// index i < n by extremes. i - n ≥ 0 follows from a fact of a case split. Each rule reduces a goal
// to goals that imply it, so a limit can lose proofs but never soundness.
#include "proof/integers/sign_search.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw::proof {
namespace {

// A search explores a tree, so its cost is bounded twice: by depth and by total steps.
constexpr int kDeepest = 6;
constexpr std::size_t kMostSteps = 400;  // limit of one search

}  // namespace

/// Results are memoized until the facts change.
bool SignSearch::nonnegative(Ix p) {
  if (store_.overflowed()) return false;
  if (const auto value = store_.number(p); value && *value >= 0) return true;
  const auto cached = known_.find(p);
  if (cached != known_.end()) return cached->second;
  steps_ = 0;
  const bool out = !samples_.refute(p) && (search(p, 0) || by_solver(p));
  known_.emplace(p, out);
  return out;
}

/// A constant below 0 is false unless the facts contradict each other, so only the outermost goal
/// examines that.
bool SignSearch::search(Ix p, int depth) {
  if (const auto value = store_.number(p)) {
    if (*value >= 0) return true;
    if (depth > 0) return false;
  }
  if (depth > kDeepest || ++steps_ > kMostSteps || (depth > 0 && samples_.refute(p))) return false;
  // A goal may not support itself.
  if (!open_.insert(p).second) return false;
  const bool out = by_signs(p) || by_extremes(p, depth) || by_facts(p, depth);
  open_.erase(p);
  return out;
}

/// An integer that a tensor holds has no known sign.
bool SignSearch::at_least_zero(AtomNumber number, int depth) {
  const Atom atom = store_.atom(number);
  switch (atom.kind) {
    case Atom::Kind::symbol: return !store_.is_free(atom.name);
    case Atom::Kind::variable: return true;
    case Atom::Kind::value: return false;
    case Atom::Kind::quotient:
      return search(atom.a, depth + 1) && search(store_.sub(atom.b, store_.constant(1)), depth + 1);
  }
  return false;
}

/// Substitutes 1 + s' for each size s, with s' ≥ 0, and requires all terms to be nonnegative.
bool SignSearch::by_signs(Ix p) {
  Polynomial terms = store_.polynomial(p);
  std::set<AtomNumber> sizes;
  for (const auto& [monomial, factor] : terms) {
    for (AtomNumber atom : monomial) {
      const Atom& a = store_.atom(atom);
      if (a.kind == Atom::Kind::symbol && !store_.is_free(a.name)) sizes.insert(atom);
    }
  }
  std::map<Monomial, std::int64_t> sums;
  for (const auto& [monomial, factor] : terms) {
    // The product of (1 + s) over the sizes s in it.
    std::vector<Monomial> parts = {{}};
    // A monomial of n sizes expands into 2^n terms.
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
    for (const Monomial& part : parts)
      if (__builtin_add_overflow(sums[part], factor, &sums[part])) return false;
  }
  return std::all_of(sums.begin(), sums.end(), [&](const auto& term) {
    return term.second == 0 || (term.second > 0 && std::all_of(term.first.begin(), term.first.end(),
                                                               [&](AtomNumber atom) {
                                                                 return at_least_zero(atom, 3);
                                                               }));
  });
}

/// p ≥ 0 follows from p - c m f ≥ 0. Here f ≥ 0 is a fact, m ≥ 0 a monomial, and c ≥ 1 a number.
/// Candidates are products m f whose leading part cancels a term of p.
bool SignSearch::by_fact(Ix p, Ix fact, int depth) {
  const Polynomial goal = store_.polynomial(p), known = store_.polynomial(fact);
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
      const Ix rest = store_.sub(p, store_.mul(store_.of_monomial(left, times), fact));
      // A rest that grows is given up: it would need several further facts.
      if (store_.polynomial(rest).size() > goal.size() + 1 || !tried.insert(rest).second) continue;
      if (search(rest, depth + 1)) return true;
    }
  }
  return false;
}

/// Later facts come first, because case splits add the most specific ones. A quotient q = a / b
/// with b ≥ 1 gives two more facts: 0 ≤ a - b q ≤ b - 1.
bool SignSearch::by_facts(Ix p, int depth) {
  for (std::size_t i = facts_.list.size(); i > 0; --i) {
    if (!by_fact(p, facts_.list[i - 1], depth)) continue;
    facts_.used.insert(i - 1);
    return true;
  }
  std::set<AtomNumber> atoms;
  for (const auto& [monomial, factor] : store_.polynomial(p))
    atoms.insert(monomial.begin(), monomial.end());
  for (AtomNumber number : atoms) {
    const Atom atom = store_.atom(number);
    if (atom.kind != Atom::Kind::quotient) continue;
    const Ix low = store_.sub(atom.a, store_.mul(atom.b, store_.of_monomial({number}, 1)));
    if (!search(store_.sub(atom.b, store_.constant(1)), depth + 1)) continue;
    if (by_fact(p, low, depth) ||
        by_fact(p, store_.sub(store_.sub(atom.b, store_.constant(1)), low), depth))
      return true;
  }
  return false;
}

/// Substitutes for an index, in which p is linear, the end at which p is least.
/// p = f i + r with 0 ≤ i < e. If f ≥ 0, r ≥ 0 suffices; if f ≤ 0, r + f (e - 1) ≥ 0 suffices. Both
/// hold pointwise, so f and r may contain the index inside a quotient.
bool SignSearch::by_extremes(Ix p, int depth) {
  std::set<AtomNumber> atoms;
  for (const auto& [monomial, factor] : store_.polynomial(p))
    atoms.insert(monomial.begin(), monomial.end());
  for (AtomNumber number : atoms) {
    const Atom atom = store_.atom(number);
    if (atom.kind != Atom::Kind::variable) continue;
    Ix factor = store_.constant(0), rest = store_.constant(0);
    bool plain = true;
    for (const auto& [monomial, f] : Polynomial(store_.polynomial(p))) {
      const auto powers = std::count(monomial.begin(), monomial.end(), number);
      plain = plain && powers <= 1;
      Monomial others;
      for (AtomNumber other : monomial)
        if (other != number) others.push_back(other);
      Ix& sum = powers == 0 ? rest : factor;
      sum = store_.add(sum, store_.of_monomial(others, f));
    }
    if (!plain) continue;
    if (search(factor, depth + 1) && search(rest, depth + 1)) return true;
    if (search(store_.negated(factor), depth + 1) &&
        search(store_.add(rest, store_.mul(factor, store_.sub(atom.a, store_.constant(1)))),
               depth + 1))
      return true;
  }
  return false;
}

/// Atoms become unknowns; their relations are passed as facts.
SolverTerm SignSearch::encode(Ix p) {
  SolverTerm out;
  for (const auto& [monomial, factor] : store_.polynomial(p)) {
    SolverTerm::Product product{factor, {}};
    for (AtomNumber atom : monomial) product.unknowns.push_back(fmt::format("a{}", atom));
    out.products.push_back(std::move(product));
  }
  return out;
}

/// Queries the solver with the facts and the bounds of every atom that they or p contain.
bool SignSearch::by_solver(Ix p) {
  if (!Solver::present() || facts_.list.empty()) return false;
  std::set<AtomNumber> atoms;
  store_.mention(p, atoms);
  std::vector<SolverTerm> facts;
  std::set<AtomNumber> fact_atoms;
  for (Ix fact : facts_.list) {
    store_.mention(fact, fact_atoms);
    facts.push_back(encode(fact));
  }
  const bool related =
      std::any_of(atoms.begin(), atoms.end(), [&](AtomNumber a) { return fact_atoms.contains(a); });
  // Without a common atom the facts cannot help; by_signs already covers the bounds alone. A number
  // is the query for a contradiction.
  if (!related && !store_.number(p)) return false;
  atoms.insert(fact_atoms.begin(), fact_atoms.end());
  for (bool more = true; more;) {
    const std::size_t before = atoms.size();
    for (AtomNumber a : std::set(atoms)) {
      const Atom& atom = store_.atom(a);
      if (atom.kind == Atom::Kind::variable || atom.kind == Atom::Kind::quotient)
        store_.mention(atom.a, atoms);
      if (atom.kind == Atom::Kind::quotient) store_.mention(atom.b, atoms);
    }
    more = atoms.size() > before;
  }
  for (AtomNumber a : atoms) {
    const Atom atom = store_.atom(a);
    const Ix self = store_.of_monomial({a}, 1), one = store_.constant(1);
    switch (atom.kind) {
      case Atom::Kind::symbol:
        if (!store_.is_free(atom.name)) facts.push_back(encode(store_.sub(self, one)));
        break;
      case Atom::Kind::variable:
        facts.push_back(encode(self));
        facts.push_back(encode(store_.sub(store_.sub(atom.a, one), self)));
        break;
      case Atom::Kind::quotient: {
        // The bounds of a quotient hold for a positive divisor only.
        if (!search(store_.sub(atom.b, one), 1)) break;
        const Ix rest = store_.sub(atom.a, store_.mul(atom.b, self));
        facts.push_back(encode(rest));
        facts.push_back(encode(store_.sub(store_.sub(atom.b, one), rest)));
        break;
      }
      case Atom::Kind::value: break;
    }
  }
  const bool proved = solver_.implies(facts, encode(p));
  // The solver does not report which facts it used, so all count as used: a guard may be reported
  // as needed although it is not.
  for (std::size_t i = 0; proved && i < facts_.list.size(); ++i) facts_.used.insert(i);
  return proved;
}

}  // namespace pw::proof
