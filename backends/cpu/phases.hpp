// Internal to cpu/: finds common subexpressions between the loops of a row, so that the first loop
// can buffer them for later loops.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::cpu {

/// Shared values of the consecutive loops of one block.
struct Phases {
  struct Shared {
    rows::SlotId first;  ///< slot in the loop that computes it
    std::int64_t extent = 0;
    /// Statement in a later loop over `var` that stores the value unchanged to a result, which can
    /// then serve as the buffer. Null: there is none.
    const rows::Statement* store = nullptr;
    rows::VarId var;
  };
  /// Buffers by the first computed slot.
  std::map<rows::SlotId, Shared> kept;
  /// Slots that are read from a buffer, with the slot that represents each.
  std::map<rows::SlotId, rows::SlotId> read;
  /// Slots that need not be computed at all.
  std::set<rows::SlotId> idle;
};

/// Maximum number of elements of a buffer; longer rows are recomputed.
inline constexpr std::int64_t kMostKept = 16384;

[[nodiscard]] Phases share_phases(const rows::RowProgram& program, const rows::Block& block);
/// Returns true if the block holds only constants, loads, computations and stores.
[[nodiscard]] bool is_flat(const rows::Block& block);
/// Returns the pragma that lets a loop with this body run its iterations in parallel.
[[nodiscard]] std::string simd_loop(const rows::Block& body);

}  // namespace pw::cpu
