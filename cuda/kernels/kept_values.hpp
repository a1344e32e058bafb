// Internal to cuda/: avoids recomputing values in a later phase of a row, such as the sum of a
// residual and its addend. Such values are narrow, so keeping them needs no more registers than
// keeping their inputs.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::cuda {

/// Place of a value between phases: an argument of the row program without memory. The loop of
/// `producer` stores it, column by column; later column loops load it.
struct KeptValue {
  std::size_t argument = 0;
  rows::VarId producer;
};

struct WithKeptValues {
  rows::RowProgram program;
  std::vector<KeptValue> values;  ///< their arguments follow those of the program
};

/// Properties that decide where values can be kept: a thread must have the same columns in both
/// loops.
struct TeamShape {
  int threads = 1;     ///< threads of the team
  int most_words = 0;  ///< available registers of 4 bytes
};

/// Returns the program with narrow values stored at their first computation and loaded at later
/// ones. This applies to loops wide enough to give every thread of the team groups of 8 columns,
/// and to inner loops with a part of the team each. The program is unchanged if nothing is gained.
[[nodiscard]] WithKeptValues keep_values(const rows::RowProgram& program, const TeamShape& team);

}  // namespace pw::cuda
