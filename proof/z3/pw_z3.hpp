// Interface of libpw_z3.so, a separate library so that programs also run without Z3.
// Only types without code of the project cross this interface, since the library does not link it.
#pragma once

#include <cstdint>
#include <vector>

#include "proof/solver.hpp"

namespace pw::proof {

class SolverLibrary {
 public:
  enum class Answer : std::uint8_t { yes, no, unknown };
  SolverLibrary() = default;
  SolverLibrary(const SolverLibrary&) = delete;
  SolverLibrary& operator=(const SolverLibrary&) = delete;
  virtual ~SolverLibrary() = default;
  /// Returns yes only if every assignment that satisfies the facts satisfies the goal.
  virtual Answer implies(const std::vector<SolverTerm>& facts, const SolverTerm& goal) = 0;
  virtual FloatAnswer same_bits(const FloatQuestion& question) = 0;
};

/// Version of this interface; a library with another version provides no solver.
inline constexpr int kSolverVersion = 2;

}  // namespace pw::proof

/// Returns a solver that the caller deletes; null for another version.
extern "C" pw::proof::SolverLibrary* pw_z3_solver(int version);
