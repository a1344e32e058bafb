// Proofs that an integer polynomial is nonnegative.
// The order of the rules, and when each applies, is described in sign_search.cpp.
#pragma once

#include <map>
#include <set>

#include "proof/integers/samples.hpp"
#include "proof/solver.hpp"

namespace pw::proof {

class SignSearch {
 public:
  SignSearch(IntegerPolynomials& store, IntegerFacts& facts, IntegerSamples& samples,
             Solver& solver)
      : store_(store), facts_(facts), samples_(samples), solver_(solver) {}

  /// Returns true if p ≥ 0 is proved; false means unknown.
  bool nonnegative(Ix p);
  /// Forgets all conclusions; required after the facts change.
  void forget() { known_.clear(); }

 private:
  using AtomNumber = IntegerPolynomials::AtomNumber;
  using Atom = IntegerPolynomials::Atom;
  using Monomial = IntegerPolynomials::Monomial;
  using Polynomial = IntegerPolynomials::Polynomial;

  /// One step of the search: whether p ≥ 0 follows; false if unknown or beyond a limit.
  bool search(Ix p, int depth);
  bool by_facts(Ix p, int depth);
  bool by_fact(Ix p, Ix fact, int depth);
  bool by_extremes(Ix p, int depth);
  bool by_signs(Ix p);
  bool at_least_zero(AtomNumber atom, int depth);
  /// Uses an SMT solver, the last resort; false without one.
  bool by_solver(Ix p);
  SolverTerm encode(Ix p);

  IntegerPolynomials& store_;
  IntegerFacts& facts_;
  IntegerSamples& samples_;
  Solver& solver_;
  std::map<Ix, bool> known_;
  std::set<Ix> open_;      ///< goals of the current search
  std::size_t steps_ = 0;  ///< steps of one search
};

}  // namespace pw::proof
