// Occurrences of indices in fractions, memoized by atom. Each query
// recurses through the arguments of atoms; the memo bounds the work to one visit per key.
#include "proof/reals/dependence.hpp"

#include <algorithm>
#include <set>

namespace pw::proof {

/// Only canonical names count, not loose ones.
std::uint32_t Dependence::height(Factor factor) {
  while (heights_.size() <= factor) heights_.push_back(kUnknownHeight);
  if (heights_[factor] != kUnknownHeight) return heights_[factor];
  const Atom& a = field_.atom(factor);
  std::uint32_t out = 0;
  for (FractionId arg : a.args)
    if (arg != kClause) out = std::max(out, height(field_[arg]));
  if (a.level >= kBound && a.level < kLoose)
    out = std::max(out, a.level + static_cast<std::uint32_t>(a.at.size()) - 1);
  heights_[factor] = out;
  return out;
}

std::uint32_t Dependence::height(const Fraction& f) {
  std::uint32_t out = 0;
  for (const Polynomial* p : {&f.over, &f.under})
    for (const auto& [monomial, factor] : *p)
      for (const auto& [atom, power] : monomial) out = std::max(out, height(atom));
  return out;
}

/// The result never changes: atoms are immutable, and their indices are substituted by making new
/// ones.
bool Dependence::depends(Factor factor, std::uint32_t level) {
  const auto known = depends_.find({factor, level});
  if (known != depends_.end()) return known->second;
  const bool out = depends_at_all(factor, level);
  depends_.emplace(std::pair(factor, level), out);
  return out;
}

/// A bound index counts as an occurrence, which is safe: at worst a factor stays inside a sum.
bool Dependence::depends_at_all(Factor factor, std::uint32_t level) {
  const Atom& a = field_.atom(factor);
  if (std::any_of(a.at.begin(), a.at.end(), [&](Ix ix) { return integers_.mentions(ix, level); }))
    return true;
  for (Ix ix : a.at)
    if (value_depends(ix, level)) return true;
  return std::any_of(a.args.begin(), a.args.end(),
                     [&](FractionId arg) { return arg != kClause && depends(field_[arg], level); });
}

// An index may be read from an integer term, whose normal form may contain the level.
bool Dependence::value_depends(Ix index, std::uint32_t level) {
  std::set<std::uint32_t> values;
  integers_.collect_values(index, values);
  return std::any_of(values.begin(), values.end(), [&](std::uint32_t value) {
    return depends(form_of_(TermId(std::size_t{value})), level);
  });
}

bool Dependence::depends(const Polynomial& p, std::uint32_t level) {
  for (const auto& [monomial, factor] : p)
    for (const auto& [f, power] : monomial)
      if (depends(f, level)) return true;
  return false;
}

}  // namespace pw::proof
