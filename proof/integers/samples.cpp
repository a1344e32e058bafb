// Random testing of integer goals: evaluates a polynomial on samples that satisfy the facts. A
// negative value refutes the goal p ≥ 0, so no proof search is needed. A sample that violates a
// fact is repaired by local search: one atom of a linear term is changed so that the fact holds, a
// bounded number of times. Invariant: sizes are at least 1 and indices stay below their extents.
// Samples only refute; they never prove.
// Sizes are small, because most false claims about sizes already fail for small ones. One value per
// atom and sample is stored, so all polynomials see the same assignment.
#include "proof/integers/samples.hpp"

#include <algorithm>

#include "base/division.hpp"
#include "base/hash.hpp"

namespace pw::proof {

/// Returns a sample's values of all unknowns. A refuted goal needs no search.
std::optional<std::int64_t> IntegerSamples::sample(AtomNumber number, std::size_t n) {
  const auto found = samples_[n].find(number);
  if (found != samples_[n].end()) return found->second;
  const Atom atom = store_.atom(number);
  std::optional<std::int64_t> out;
  const std::uint64_t draw = combine(combine(hash_text(atom.name), atom.number), n) >> 7;
  switch (atom.kind) {
    case Atom::Kind::symbol: {
      // The modulus varies with the sample: some samples consist of sizes 1 and 2 only.
      constexpr std::uint64_t kSizes[] = {2, 3, 5, 9};
      out = static_cast<std::int64_t>(draw % kSizes[n % 4]) + (store_.is_free(atom.name) ? 0 : 1);
      break;
    }
    case Atom::Kind::variable:
      if (const auto extent = sample(atom.a, n); extent && *extent > 0)
        // Half of the samples are at an end of the range, where off-by-one claims fail.
        out = n % 4 == 0   ? *extent - 1
              : n % 4 == 1 ? 0
                           : static_cast<std::int64_t>(draw % static_cast<std::uint64_t>(*extent));
      break;
    case Atom::Kind::quotient: {
      const auto a = sample(atom.a, n), b = sample(atom.b, n);
      if (a && b && *b > 0) out = floor_div(*a, *b);
      break;
    }
    case Atom::Kind::value: out = static_cast<std::int64_t>(draw % 15) - 4; break;
  }
  samples_[n].emplace(number, out);
  return out;
}

/// Nothing if an atom has no value, such as an index of an empty axis, or on overflow.
std::optional<std::int64_t> IntegerSamples::sample(Ix p, std::size_t n) {
  std::int64_t sum = 0;
  for (const auto& [monomial, factor] : Polynomial(store_.polynomial(p))) {
    std::int64_t product = factor;
    for (AtomNumber atom : monomial) {
      const auto value = sample(atom, n);
      if (!value || __builtin_mul_overflow(product, *value, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

/// Returns true if a sample satisfies the facts, after repairs of its numbers if necessary.
/// A repair may break another fact, so the number of repairs is bounded. A sample that does not fit
/// is ignored.
bool IntegerSamples::fit(std::size_t n) {
  constexpr int kMostRepairs = 12;
  for (int repairs = 0; repairs <= kMostRepairs; ++repairs) {
    const auto broken = std::find_if(facts_.list.begin(), facts_.list.end(), [&](Ix fact) {
      const auto value = sample(fact, n);
      return !value || *value < 0;
    });
    if (broken == facts_.list.end()) return true;
    if (!repair(*broken, n)) return false;
  }
  return false;
}

/// Changes the value of one atom so that the fact holds.
bool IntegerSamples::repair(Ix fact, std::size_t n) {
  constexpr std::int64_t kFar = 1 << 20;
  const auto value = sample(fact, n);
  if (!value || *value < -kFar) return false;
  const Polynomial terms = store_.polynomial(fact);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const auto& [monomial, factor] = terms[(i + n) % terms.size()];
    if (monomial.size() != 1 || (factor != 1 && factor != -1)) continue;
    const Atom& atom = store_.atom(monomial[0]);
    const auto old = sample(monomial[0], n);
    if (atom.kind == Atom::Kind::quotient || !old) continue;
    // The fact then has the value 0, 1, or 2, by the number of the sample, so that both equality
    // and slack occur.
    const std::int64_t next = *old + factor * (static_cast<std::int64_t>(n % 3) - *value);
    if (atom.kind == Atom::Kind::symbol && next < 1 && !store_.is_free(atom.name)) continue;
    if (atom.kind == Atom::Kind::variable) {
      const auto extent = sample(atom.a, n);
      if (next < 0 || !extent || next >= *extent) continue;
    }
    samples_[n][monomial[0]] = next;
    forget_dependent(n);
    return true;
  }
  return false;
}

/// Removes dependent values of a changed sample: quotients, and indices beyond their extent.
void IntegerSamples::forget_dependent(std::size_t n) {
  std::erase_if(samples_[n], [&](const auto& known) {
    return store_.atom(known.first).kind == Atom::Kind::quotient;
  });
  std::vector<AtomNumber> beyond;
  for (const auto& [number, value] : std::map(samples_[n])) {
    const Atom atom = store_.atom(number);
    if (atom.kind != Atom::Kind::variable) continue;
    const auto extent = sample(atom.a, n);
    if (!value || !extent || *value >= *extent) beyond.push_back(number);
  }
  for (AtomNumber number : beyond) samples_[n].erase(number);
}

/// False means that no sample refutes p ≥ 0. It does not prove the goal.
bool IntegerSamples::refute(Ix p) {
  constexpr std::size_t kSamples = 256;
  samples_.resize(kSamples);
  if (fits_.empty()) {
    for (std::size_t n = 0; n < kSamples; ++n) fits_.push_back(fit(n));
  }
  for (std::size_t n = 0; n < kSamples; ++n) {
    if (!fits_[n]) continue;
    const auto value = sample(p, n);
    if (value && *value < 0) return true;
  }
  return false;
}

}  // namespace pw::proof
