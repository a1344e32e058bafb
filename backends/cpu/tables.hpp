// Internal to cpu/: finds loads that every iteration of an outer loop repeats, in pairs of columns.
#pragma once

#include <vector>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::cpu {

/// A load in a loop that runs in pairs.
struct PairedLoad {
  const rows::Statement *loop = nullptr, *load = nullptr;
};

/// Returns the f32 loads in paired loops inside `outer` whose elements are equal in every
/// iteration, such as sines and cosines of a position for all heads. Their even and odd columns
/// then have to be separated only once.
[[nodiscard]] std::vector<PairedLoad> read_each_turn(const rows::RowProgram& program,
                                                     const rows::Statement& outer);

}  // namespace pw::cpu
