// Internal to cuda/: computes the number of threads of a row from the widths of its loops.
#pragma once

#include <cstdint>

#include "cuda/kernels/access.hpp"
#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

inline constexpr int kMaxTeam = 256;  ///< lanes of the widest reduction
inline constexpr int kMeetings = 8;   ///< exchange slots for each unit; 40 KiB in total

/// Returns the lanes of a reduction over so many columns.
[[nodiscard]] int lanes_of(std::int64_t columns);
/// Returns true if a statement is an innermost loop or reduction over columns.
[[nodiscard]] bool is_columns(const rows::Statement& s);

class TeamSize {
 public:
  explicit TeamSize(const rows::RowProgram& program) : program_(program), accesses_(program) {}

  /// Returns the number of threads, at most 256, that the statements keep busy.
  [[nodiscard]] int needed(const rows::Block& body) const;
  [[nodiscard]] int needed(const rows::Statement& s) const;
  /// Returns the groups of 256 threads for a row, such that each thread has few passes. More than
  /// one requires a reduction over more columns than two passes cover, with all data read by column
  /// groups before the reduction begins. A power of two that divides a multiprocessor's threads.
  [[nodiscard]] int groups(const rows::Block& body);
  /// Returns the maximum number of blocks for a row: the most passes of a loop, if no reduction
  /// covers the whole row. A step of few tokens then uses more multiprocessors.
  [[nodiscard]] int parts(const rows::Block& body, int team, const Schedule& schedule) const;
  /// Returns the lanes of the widest reduction, and the number of such reductions.
  [[nodiscard]] int widest_within(const rows::Block& body) const;
  [[nodiscard]] static int reductions(const rows::Block& body);
  [[nodiscard]] std::int64_t columns(rows::VarId var) const;  ///< -1: unknown at compile time

 private:
  [[nodiscard]] bool all_by_groups(const rows::Statement& s);
  [[nodiscard]] std::int64_t passes_of(const rows::Statement& loop, int team) const;

  const rows::RowProgram& program_;
  AccessPlan accesses_;
};

}  // namespace pw::cuda
