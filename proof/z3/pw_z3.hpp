// What libpw_z3.so gives: a library by itself, so that programs run where Z3 is not.
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
  virtual Answer implies(const std::vector<SolverTerm>& facts, const SolverTerm& goal) = 0;
  virtual FloatAnswer same_bits(const FloatQuestion& question) = 0;
};

/// Of what goes through here: a library of another one gives no solver.
inline constexpr int kSolverVersion = 1;

}  // namespace pw::proof

/// The caller's to delete; null for another version.
extern "C" pw::proof::SolverLibrary* pw_z3_solver(int version);
