// Chooses the threads of a row. A loop of n columns keeps ceil(n / 8) threads busy, rounded up to a
// power of two and at most 256; a loop around loops multiplies that by its passes. The row takes
// the maximum over its statements.
//
// Wide rows extend this in two ways: groups of 256 threads take turns in one reduction, and rows
// without a reduction over the whole row are divided among blocks. Invariant: neither changes the
// reduction tree, which depends on the width alone, so results are bit-identical. Cost: a few walks
// over the program.
#include "cuda/kernels/team_size.hpp"

#include <algorithm>

namespace pw::cuda {

using rows::Block;
using rows::Statement;
using StatementKind = rows::Statement::Kind;

namespace {

constexpr int kMaxGroups = 4;             // groups of 256 threads that share a wide row
constexpr std::int64_t kGroupPasses = 2;  // passes of a thread, while there are more groups
constexpr std::int64_t kMaxParts = 4096;  // blocks that share a row

int power_of_two_from(std::int64_t n) {
  int p = 1;
  while (p < kMaxTeam && p < n) p *= 2;
  return p;
}

}  // namespace

int lanes_of(std::int64_t columns) {
  return power_of_two_from((columns + kColumns - 1) / kColumns);
}

bool is_columns(const Statement& s) {
  return s.kind == StatementKind::reduce ||
         (s.kind == StatementKind::loop && !holds_loops(s.first));
}

std::int64_t TeamSize::columns(rows::VarId var) const {
  const rows::Interval extent = program_.indices.interval(program_.indices.extent(var));
  return extent.low == extent.high ? extent.high : -1;
}

int TeamSize::needed(const Block& body) const {
  int most = 1;
  for (const Statement& s : body) most = std::max(most, needed(s));
  return most;
}

int TeamSize::needed(const Statement& s) const {
  if (s.kind != StatementKind::loop && s.kind != StatementKind::reduce) return 1;
  const std::int64_t n = columns(s.var);
  if (n < 0) return kMaxTeam;
  if (s.kind == StatementKind::reduce || !holds_loops(s.first)) return lanes_of(n);
  return std::min(kMaxTeam, needed(s.first) * power_of_two_from(n));
}

/// More than one group requires that every column loop has a known multiple of 8 columns and reads
/// by groups only, because in_turns() (teams.cpp) loads all data before the first turn.
int TeamSize::groups(const Block& body) {
  std::int64_t most = 0;
  for (const Statement& s : body) {
    if (s.kind == StatementKind::branch || (s.kind == StatementKind::loop && holds_loops(s.first) &&
                                            (columns(s.var) < 0 || widest_within(s.first) > 32)))
      return 1;
    if (!is_columns(s)) continue;
    const std::int64_t n = columns(s.var);
    if (n < 0 || n % kColumns != 0 || !all_by_groups(s)) return 1;
    if (s.kind == StatementKind::reduce)
      most = std::max(most, (n / kColumns + kMaxTeam - 1) / kMaxTeam);
  }
  int groups = 1;
  while (groups < kMaxGroups && kGroupPasses * groups < most) groups *= 2;
  return groups;
}

bool TeamSize::all_by_groups(const Statement& s) {
  const ColumnLoop loop = accesses_.plan(s.var, s.first);
  return std::none_of(loop.accesses.begin(), loop.accesses.end(),
                      [](const auto& a) { return a.second.kind == Access::Kind::element; });
}

int TeamSize::widest_within(const Block& body) const {
  int most = 0;
  for (const Statement& s : body) {
    if (s.kind == StatementKind::reduce) most = std::max(most, needed(s));
    most = std::max({most, widest_within(s.first), widest_within(s.second)});
  }
  return most;
}

/// Counts the reductions of a block, nested ones included.
int TeamSize::reductions(const Block& body) {
  int n = 0;
  for (const Statement& s : body)
    n += (s.kind == StatementKind::reduce ? 1 : 0) + reductions(s.first) + reductions(s.second);
  return n;
}

/// A row may be divided only if no reduction covers the whole row: blocks cannot exchange values.
int TeamSize::parts(const Block& body, int team, const Schedule& schedule) const {
  if (reductions(body) > kMeetings)
    return 1;  // blocks skip barriers, so exchange slots could not be reused in turn
  std::int64_t most = 1;
  for (const Statement& s : body) {
    if (s.kind == StatementKind::reduce || s.kind == StatementKind::branch) return 1;
    if (s.kind != StatementKind::loop) continue;
    if (columns(s.var) < 0) return 1;
    most = std::max(most, passes_of(s, team));
  }
  most = (most + schedule.passes - 1) / schedule.passes;
  return most <= kMaxParts ? static_cast<int>(most) : 1;
}

std::int64_t TeamSize::passes_of(const Statement& loop, int team) const {
  const std::int64_t n = columns(loop.var);
  const std::int64_t at_once = holds_loops(loop.first) ? team / std::min(team, needed(loop.first))
                                                       : std::int64_t{team} * kColumns;
  return (n + at_once - 1) / at_once;
}

}  // namespace pw::cuda
