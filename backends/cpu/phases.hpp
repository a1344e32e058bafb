// Internal to cpu/: common subexpressions between the loops of a row, so that the first loop may
// keep them in a buffer for the others.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::cpu {

/// Of the loops that stand side by side in one block.
struct Phases {
  struct Shared {
    rows::SlotId first;  ///< of the loop that computes it
    std::int64_t extent = 0;
    /// What writes it to a result as it is, in a later loop over `var`: that result can be the
    /// buffer. Null: there is none.
    const rows::Statement* store = nullptr;
    rows::VarId var;
  };
  /// Buffers, by the slot that is computed first.
  std::map<rows::SlotId, Shared> kept;
  /// Slots that are read from a buffer instead: the slot that stands for them.
  std::map<rows::SlotId, rows::SlotId> read;
  /// Slots that need not be computed at all.
  std::set<rows::SlotId> idle;
};

/// The most elements a buffer may have; longer rows are computed again.
inline constexpr std::int64_t kMostKept = 16384;

[[nodiscard]] Phases share_phases(const rows::RowProgram& program, const rows::Block& block);
/// Only constants, loads, computations and stores.
[[nodiscard]] bool is_flat(const rows::Block& block);

}  // namespace pw::cpu
