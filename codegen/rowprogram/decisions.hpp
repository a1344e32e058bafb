// Decisions of a row program: a lost rounding changes their outcome, not only the last bits.
#pragma once

#include <vector>

#include "codegen/rowprogram/grouping.hpp"
#include "codegen/rowprogram/row_program.hpp"

namespace pw::rows {

/// Returns true if the program compares numbers that it has computed with rounding, or takes the
/// whole part of them.
[[nodiscard]] bool decides(const RowProgram& program);

/// Returns true if the program of any unit decides. Then all units keep every rounding, because a
/// value that one compares may be computed again in another.
[[nodiscard]] bool any_decides(const std::vector<RunUnit>& units);

}  // namespace pw::rows
