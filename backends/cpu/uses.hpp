// Internal to cpu/: def-use facts of a row program.
#pragma once

#include <set>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::cpu {

/// Adds the slots that stores write, and the slots that other statements read.
void find_uses(const rows::Block& block, std::set<rows::SlotId>& stored,
               std::set<rows::SlotId>& read);

/// Single-precision divisions by a loop-invariant divisor in a flat loop.
struct Divisions {
  std::set<rows::SlotId> quotients, divisors;
};
/// Adds the divisions of a block that may become multiplications. Excludes quotients that round to
/// fp8 or an integer, because these may lie halfway between two values.
void find_divisions(const rows::RowProgram& program, const rows::Block& block, Divisions& out);

/// Returns true if the reduced values are absolute values, as they are or cast.
[[nodiscard]] bool of_magnitudes(const rows::RowProgram& program, const rows::Statement& reduce);

/// Returns the number of independent partial results of a reduction whose order is free. Several
/// vectors of partial results hide latency. 0: sequential.
[[nodiscard]] std::int64_t lanes_beside(const rows::RowProgram& program,
                                        const rows::Statement& reduce);

}  // namespace pw::cpu
