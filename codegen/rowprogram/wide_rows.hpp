// Joins the last dims of results, so that vectors of a processor are filled: rows of 7 elements, as
// images of the last layers of a convolutional network have, become rows of 49.
#pragma once

#include "codegen/rowprogram/row_program.hpp"

namespace pw::rows {

/// Joins the last dims of all results while these are narrow and enough rows remain. The results
/// keep their elements in memory. Returns true if any were joined.
bool join_narrow_rows(Graph& alone);

/// Returns true if some address needs a division by an extent for each element of a loop.
[[nodiscard]] bool divides_in_loops(const RowProgram& program);

}  // namespace pw::rows
