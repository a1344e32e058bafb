// Samples of the unknowns of integer polynomials, which refute goals.
// Most goals of a proof search are false, and a refutation by testing is far cheaper than a failed
// search.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "proof/integers/polynomials.hpp"

namespace pw::proof {

class IntegerSamples {
 public:
  IntegerSamples(const IntegerPolynomials& store, const IntegerFacts& facts)
      : store_(store), facts_(facts) {}

  /// Returns true if p is negative for some sample that satisfies all facts.
  bool refute(Ix p);
  /// Forgets which samples satisfy the facts; required after these change.
  void forget_fits() { fits_.clear(); }

 private:
  using AtomNumber = IntegerPolynomials::AtomNumber;
  using Atom = IntegerPolynomials::Atom;
  using Polynomial = IntegerPolynomials::Polynomial;

  bool fit(std::size_t n);
  bool repair(Ix fact, std::size_t n);
  void forget_dependent(std::size_t n);
  std::optional<std::int64_t> sample(AtomNumber atom, std::size_t n);
  std::optional<std::int64_t> sample(Ix p, std::size_t n);

  const IntegerPolynomials& store_;
  const IntegerFacts& facts_;
  std::vector<std::map<AtomNumber, std::optional<std::int64_t>>> samples_;
  std::vector<bool> fits_;  ///< which samples satisfy the facts; empty if not yet computed
};

}  // namespace pw::proof
