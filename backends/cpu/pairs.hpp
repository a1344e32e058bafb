// Internal to cpu/: selects loops that process two neighbouring columns at a time. One word holds
// two 16-bit floats; a shift and a mask split it into two float registers, and a shift and an or
// join them again. Unlike widening and narrowing, this moves no elements across a vector.
#pragma once

#include <set>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::cpu {

/// Returns true if a load or store of a loop over `var` moves two neighbouring narrow floats as one
/// word.
[[nodiscard]] bool is_packed(const rows::RowProgram& program, const rows::Statement& access,
                             rows::VarId var);
/// Returns the loops and reductions of a block that run in pairs, by variable. Loops of equal
/// extent are either all paired or all not, because they may share buffers.
[[nodiscard]] std::set<rows::VarId> loops_in_pairs(const rows::RowProgram& program,
                                                   const rows::Block& block);

}  // namespace pw::cpu
