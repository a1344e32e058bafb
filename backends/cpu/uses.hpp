// Internal to cpu/: def-use facts of a row program.
#pragma once

#include <set>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::cpu {

/// The slots that stores write, and those whose values something else reads.
void find_uses(const rows::Block& block, std::set<rows::SlotId>& stored,
               std::set<rows::SlotId>& read);

/// Divisions in single precision by what the flat loop they stand in does not compute.
struct Divisions {
  std::set<rows::SlotId> quotients, divisors;
};
/// Not where the quotient becomes fp8 or an integer: it may lie halfway between two of them.
void find_divisions(const rows::RowProgram& program, const rows::Block& block, Divisions& out);

/// Whether what a reduction reduces has no sign: absolute values, as they are or cast.
[[nodiscard]] bool of_magnitudes(const rows::RowProgram& program, const rows::Statement& reduce);

/// How many partial results of a reduction are made side by side where any order will do: several
/// vectors of them, which hide each other's latency. 0: one after the other.
[[nodiscard]] std::int64_t lanes_beside(const rows::RowProgram& program,
                                        const rows::Statement& reduce);

}  // namespace pw::cpu
