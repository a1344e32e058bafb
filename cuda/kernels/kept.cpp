// Chooses which column groups stay on chip between the phases of a row. A group is a candidate if
// at least two loops of the block read it with the same thread assignment and a known number of
// passes.
//
// The choice is greedy (first fit) in the order of first reads: registers as long as the schedule's
// limit allows, then the block's shared memory, else the group is read again. Invariant: a thread
// reads back only what it has stored itself, so shared memory needs no barrier. Cost: quadratic in
// the groups of a block of statements, which are few.
#include "cuda/kernels/kept.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw::cuda {
namespace {

constexpr std::int64_t kMaxBytes = 98304;  // shared memory of a block for kept groups
constexpr std::int64_t kMaxPasses = 8;     // passes that are unrolled to stay in registers
/// A group is kept only if a second loop of the block reads it; nested loops count as readers but
/// never as first readers.

}  // namespace

int most_kept_words(const Schedule& schedule, int team) {
  constexpr int kLargeTeam = 1024, kItsWords = 24;  // a thread of such a block has 64 registers
  return team < kLargeTeam ? schedule.kept_words : std::min(schedule.kept_words, kItsWords);
}

std::vector<Kept> KeptStore::choose(
    const std::vector<Reader>& readers,
    const std::function<bool(const rows::Statement*, const GroupRead&)>& lent, int team,
    bool whole) {
  std::vector<std::pair<Kept, int>> read;  // with the number of loops that read it
  for (const Reader& reader : readers) {
    const ColumnPasses& p = *reader.passes;
    if (p.lanes != team || p.passes == 0) continue;
    for (const GroupRead& g : p.loop.groups) {
      if (program_.arguments[g.argument].result || g.words < 2) continue;
      if (lent(reader.statement, g)) continue;
      const auto known = std::find_if(read.begin(), read.end(), [&](const auto& r) {
        return r.first.group == g && r.first.serves(p);
      });
      if (known != read.end())
        ++known->second;
      else if (!reader.nested)
        read.push_back({Kept{"", g, p.lanes, p.passes, false, 0, reader.statement}, 1});
    }
  }
  std::vector<Kept> chosen;
  for (auto& [kept, times] : read) {
    if (times < 2) continue;
    const std::int64_t words = kept.passes * kept.group.words;
    const std::int64_t units = kept.passes * ((kept.group.words + 3) / 4);
    if (kept.passes <= kMaxPasses &&
        kernel_.kept_words + words <= most_kept_words(kernel_.schedule, team)) {
      kernel_.kept_words += static_cast<int>(words);
    } else if (whole && team > 32 && units_ % kept.passes == 0 &&
               (units_ + units) * team * 16 <= kMaxBytes) {
      kept.shared = true;
      kept.slot = units_ / kept.passes;
      units_ += units;
      kernel_.shared_bytes = units_ * team * 16;
    } else {
      continue;
    }
    kept.name = fmt::format("h{}", count_++);
    chosen.push_back(kept);
  }
  return chosen;
}

}  // namespace pw::cuda
