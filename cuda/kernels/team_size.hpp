// Internal to cuda/: how many threads share a row, which follows from the widths of its loops.
#pragma once

#include <cstdint>

#include "cuda/kernels/access.hpp"
#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

inline constexpr int kMaxTeam = 256;  ///< lanes of the widest reduction
inline constexpr int kMeetings = 8;   ///< places where lanes meet, for each unit; 40 KiB together

/// Lanes of a reduction over so many columns.
[[nodiscard]] int lanes_of(std::int64_t columns);
/// Whether a statement is a loop or a reduction over columns, with none inside.
[[nodiscard]] bool is_columns(const rows::Statement& s);

class TeamSize {
 public:
  explicit TeamSize(const rows::RowProgram& program) : program_(program), accesses_(program) {}

  /// Threads, at most 256, that statements keep busy.
  [[nodiscard]] int needed(const rows::Block& body) const;
  [[nodiscard]] int needed(const rows::Statement& s) const;
  /// Groups of 256 threads that a row is worth, so that each thread has few passes: where it is
  /// reduced over more columns than they take in two, and all is read by groups of columns, before
  /// the reduction begins. A power of two, of which a multiprocessor has a whole number.
  [[nodiscard]] int groups(const rows::Block& body);
  /// Into how many blocks a row can go: the most passes of a loop, where no reduction is over the
  /// whole row. A step of few tokens then runs on more than a few multiprocessors.
  [[nodiscard]] int parts(const rows::Block& body, int team, const Schedule& schedule) const;
  /// Lanes of the widest reduction, and how many there are.
  [[nodiscard]] int widest_within(const rows::Block& body) const;
  [[nodiscard]] static int reductions(const rows::Block& body);

 private:
  [[nodiscard]] std::int64_t columns(rows::VarId var) const;  ///< -1: not known beforehand
  [[nodiscard]] bool all_by_groups(const rows::Statement& s);
  [[nodiscard]] std::int64_t passes_of(const rows::Statement& loop, int team) const;

  const rows::RowProgram& program_;
  AccessPlan accesses_;
};

}  // namespace pw::cuda
