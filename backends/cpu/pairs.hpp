// Internal to cpu/: which loops take two neighbouring columns at a time. Two 16-bit floats that are
// read as one word become two registers of floats by a shift and a mask, and one word again by a
// shift and an or: without moving elements across a vector, as widening and narrowing do.
#pragma once

#include <set>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::cpu {

/// Whether a load or store of a loop over `var` moves neighbours of a narrow float as one word.
[[nodiscard]] bool is_packed(const rows::RowProgram& program, const rows::Statement& access,
                             rows::VarId var);
/// The loops and reductions of a block that run in pairs, by their variables. Those of one extent
/// do or do not together, since they may share buffers.
[[nodiscard]] std::set<rows::VarId> loops_in_pairs(const rows::RowProgram& program,
                                                   const rows::Block& block);

}  // namespace pw::cpu
