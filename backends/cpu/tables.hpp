// Internal to cpu/: what every turn of a loop reads again, in pairs of columns.
#pragma once

#include <vector>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::cpu {

/// A load of a loop that runs in pairs.
struct PairedLoad {
  const rows::Statement *loop = nullptr, *load = nullptr;
};

/// The loads of f32, in loops of `outer` that run in pairs, of elements that are the same in each
/// of its turns: the sines and cosines of a row's position, for all of its heads. Even and odd
/// columns of them need be told apart but once.
[[nodiscard]] std::vector<PairedLoad> read_each_turn(const rows::RowProgram& program,
                                                     const rows::Statement& outer);

}  // namespace pw::cpu
