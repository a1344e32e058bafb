// Internal to cuda/: values that a later phase of a row would compute again, such as the sum of a
// residual and what is added to it. They are narrow, so keeping them takes no more registers than
// keeping what they are computed from.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::cuda {

/// Where a value is kept between phases: an argument of the row program that no memory stands for.
/// The loop of `producer` stores it, column by column; later loops over columns load it.
struct KeptValue {
  std::size_t argument = 0;
  rows::VarId producer;
};

struct WithKeptValues {
  rows::RowProgram program;
  std::vector<KeptValue> values;  ///< their arguments stand behind those of the program
};

/// What decides where values can be kept: a thread has the same columns in both loops.
struct TeamShape {
  int threads = 1;     ///< of the team
  int most_words = 0;  ///< registers of 4 bytes that may be used
};

/// The program with narrow values stored where they are first computed and loaded where they would
/// be computed again, in loops of a width that gives all threads of the team groups of 8 columns;
/// and in loops within loops, by a part of the team each. Unchanged where nothing is gained.
[[nodiscard]] WithKeptValues keep_values(const rows::RowProgram& program, const TeamShape& team);

}  // namespace pw::cuda
