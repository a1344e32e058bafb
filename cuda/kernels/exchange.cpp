// Emits the exchanges of a reduction: between the warps of a block through shared memory, then
// within each warp by shuffles. The pairs follow the fixed tree, the farthest lanes first, so the
// result does not depend on the schedule. Cost: log2(lanes) steps and at most one barrier.
#include "cuda/kernels/exchange.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cuda/kernels/team_size.hpp"

namespace pw::cuda {

using rows::Statement;

std::string Exchange::next_slot(rows::Unit unit, int threads) {
  const int number = used_++ % kMeetings;
  const std::string slot = fmt::format("s{}_{}", rows::name(unit), number);
  const std::string declaration =
      fmt::format("  PW_SHARED({}, {}, {});\n", type_of(unit), slot, threads);
  if (declarations_.find(declaration) == std::string::npos) declarations_ += declaration;
  return slot;
}

void Exchange::combine_warps(const Statement& s, std::int64_t lanes, const Team& team,
                             int block_threads, int depth) {
  const std::string id = std::to_string(s.slot.index);
  // Indexed by the thread's place in the block: parts of the team use adjacent places.
  const std::string slot = next_slot(s.unit, block_threads);
  text_.line(depth, fmt::format("pw_put({}, t, a{});", slot, id));
  record(s, std::max<std::int64_t>(lanes, 0));
  barrier(depth);
  text_.line(depth, fmt::format("{}a{} = pw_meet<{}, {}>({}, t, {});",
                                lanes < 0 ? fmt::format("if (n{} > 32) ", id) : "", id,
                                type_of(s.unit), ThreadText::function(s), slot,
                                lanes < 0 ? "n" + id : std::to_string(lanes)));
  if (team.repeated) barrier(depth);
}

void Exchange::combine_within_warp(const Statement& s, std::int64_t lanes, const Team& team,
                                   int depth) {
  const std::string id = std::to_string(s.slot.index);
  for (std::int64_t d = (lanes < 0 ? 32 : std::min<std::int64_t>(lanes, 32)) / 2; d > 0; d /= 2)
    text_.line(depth, fmt::format("{0}a{1} = pw_pair<{2}, {3}>(a{1}, {4}, {5});",
                                  lanes < 0 ? fmt::format("if (n{} > {}) ", id, d) : "", id,
                                  type_of(s.unit), ThreadText::function(s), d, team.place));
}

void Exchange::combine_turns(const Statement& s, const std::string& slot, const Team& team,
                             int depth) {
  kernel_.barriers += team.groups;
  record_turns(s, team.groups);
  record(s, kMaxTeam);
  text_.line(depth,
             fmt::format("a{} = pw_meet<{}, {}>({}, {} % {}, {});", s.slot.index, type_of(s.unit),
                         ThreadText::function(s), slot, team.place, kMaxTeam, kMaxTeam));
}

/// Records the reads of the stored values, by all but the first group of threads.
void Exchange::record_turns(const Statement& s, int groups) {
  AccessNode access;
  access.space = Space::shared;
  access.bytes = s.unit == rows::Unit::f32 ? 4 : 8;
  access.one_of = groups;
  access.times = groups - 1;
  text_.accesses.add(access);
}

/// Records the exchange of a reduction: each thread stores its value, and reads those of the
/// lanes 32 apart.
void Exchange::record(const Statement& s, std::int64_t lanes) {
  AccessNode access;
  access.space = Space::shared;
  access.write = true;
  access.bytes = s.unit == rows::Unit::f32 ? 4 : 8;
  text_.accesses.add(access);
  access.write = false;
  if (lanes > 0) access.times = lanes / 32;
  if (lanes == 0) access.var = s.var;
  text_.accesses.add(access);
}

void Exchange::barrier(int depth) {
  ++kernel_.barriers;
  text_.line(depth, "__syncthreads();");
}

}  // namespace pw::cuda
