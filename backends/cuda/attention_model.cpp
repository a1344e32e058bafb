// Exports AttentionTile, AttentionTiles, attention_bound and attention_time.
#include "backends/cuda/attention_model.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

namespace pw::cuda {
namespace {

constexpr double kElement = 2;  // bytes
constexpr double kOfQuery = 16 * kElement;
constexpr std::int64_t kFewRows = 256, kTypicalKeys = 4096;
// Instructions of a warp, counted in the machine code: for each score of a lane (mask, maximum,
// power, sum, half of a conversion), for each copy of 16 bytes, and for each block of keys.
constexpr double kOfScore = 8, kOfCopy = 10, kOfBlock = 150;

struct KeysOfBlock {
  double keys = 0;   ///< with those of no row, up to whole blocks
  double steps = 0;  ///< blocks of keys of a strand
};

/// What one block of threads does, in seconds of a multiprocessor that has nothing else.
struct BlockCost {
  double mma = 0, shared = 0, issue = 0, bytes = 0;
  BlockCost& operator+=(const BlockCost& b) {
    mma += b.mma;
    shared += b.shared;
    issue += b.issue;
    bytes += b.bytes;
    return *this;
  }
  /// What warps do one after the other, others do meanwhile, if there are others.
  [[nodiscard]] double most(bool alone) const {
    return alone ? std::max(shared, mma + issue) : std::max({mma, shared, issue});
  }
};

BlockCost cost_of(const TensorMachine& machine, const AttentionWork& work,
                  const AttentionTile& tile, const KeysOfBlock& keys) {
  const auto width = static_cast<double>(work.width);
  const double rows = tile.rows(), down = tile.down, tall = tile.tall;
  const double pair = 2 * width * kElement;  // of a key and its value
  const double scores = keys.keys * rows / 32;
  const double multiply = 4 * rows * keys.keys * width;
  // Two fragments of 16 by 16 for each ldmatrix; an instruction multiplies 16 by 8 by 16.
  const double instructions = multiply / (2 * 16 * 8 * 16) + keys.keys * pair * down / 512 +
                              keys.steps * down * tall * width / 16 + scores * kOfScore +
                              keys.keys * pair / 16 / 32 * kOfCopy + keys.steps * down * kOfBlock;
  BlockCost out;
  out.mma = multiply / (machine.flops / machine.multiprocessors);
  out.shared = (keys.keys * pair * (1 + down) + keys.steps * down * tall * kOfQuery * width) /
               machine.shared_bandwidth();
  out.issue = instructions / machine.issue();
  out.bytes = keys.keys * pair;
  return out;
}

/// The keys of the block of the n-th tile of tokens: those of each sequence in it, up to the most
/// that one of its tokens sees, of one part.
KeysOfBlock keys_of(const AttentionWork& work, const AttentionTile& tile, std::int64_t n) {
  const std::int64_t each = tile.tokens(work.heads / work.groups);
  const std::int64_t step = std::int64_t{tile.order.keys} * tile.order.strands;
  const std::int64_t end = std::min((n + 1) * each, work.sequences * work.rows);
  KeysOfBlock out;
  for (std::int64_t first = n * each; first < end;) {
    const std::int64_t last = std::min(end, (first / work.rows + 1) * work.rows);
    const std::int64_t limit = work.past + (last - 1) % work.rows + 1;
    const std::int64_t steps =
        ((limit + step - 1) / step + tile.order.parts - 1) / tile.order.parts;
    out.keys += static_cast<double>(steps * step);
    out.steps += static_cast<double>(steps * tile.order.strands);
    first = last;
  }
  return out;
}

struct Loaded {
  double most = 0;  ///< seconds of the multiprocessor with the most work
  std::string_view bound;
  double bytes = 0;       ///< that all blocks read
  std::int64_t deep = 0;  ///< blocks of that multiprocessor
  double busy = 0;        ///< multiprocessors with a block
};

/// Blocks go to the multiprocessor with the least work so far, in the order in which they begin: of
/// the last tile of tokens those of all groups and parts, then of the tile before.
Loaded load(const TensorMachine& machine, const AttentionWork& work, const AttentionTile& tile,
            std::int64_t resident) {
  const auto alone = [&](std::int64_t at_once) {
    return at_once * tile.threads() / 32 < 2 * kFullWarps;
  };
  const std::int64_t each = tile.tokens(work.heads / work.groups);
  const std::int64_t tiles = (work.sequences * work.rows + each - 1) / each;
  std::vector<BlockCost> costs;
  for (std::int64_t n = tiles; n-- > 0;)
    costs.push_back(cost_of(machine, work, tile, keys_of(work, tile, n)));
  using Entry = std::pair<double, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> free;
  const auto count = static_cast<std::size_t>(machine.multiprocessors);
  std::vector<BlockCost> on(count);
  std::vector<std::int64_t> blocks(count);
  for (std::size_t i = 0; i < count; ++i) free.emplace(0, i);
  Loaded out;
  for (const BlockCost& cost : costs)
    for (std::int64_t column = 0; column < work.groups * tile.order.parts; ++column) {
      const std::size_t i = free.top().second;
      free.pop();
      on[i] += cost;
      ++blocks[i];
      out.bytes += cost.bytes;
      free.emplace(on[i].most(alone(resident)), i);
    }
  for (std::size_t i = 0; i < count; ++i) {
    if (blocks[i] == 0) continue;
    ++out.busy;
    const BlockCost& c = on[i];
    const double seconds = c.most(alone(std::min(resident, blocks[i])));
    if (seconds < out.most) continue;
    out.most = seconds;
    out.deep = blocks[i];
    out.bound = c.mma >= c.shared && c.mma >= c.issue ? "mma"
                : c.shared >= c.issue                 ? "shared memory"
                                                      : "issue";
  }
  return out;
}

double bytes_of_rows(const AttentionWork& w) {
  return static_cast<double>(2 * w.sequences * w.rows * w.heads * w.width) * kElement;
}

double bytes_of_keys(const AttentionWork& w) {
  return static_cast<double>(2 * w.sequences * (w.past + w.rows) * w.groups * w.width) * kElement;
}

}  // namespace

std::int64_t AttentionTile::shared_bytes(std::int64_t width) const {
  const std::int64_t words = (width / 8 + 7) / 8 * 8, warps = std::int64_t{down} * order.strands;
  const std::int64_t stages = std::int64_t{4} * order.keys * order.strands * words;
  const std::int64_t merged = order.strands > 1 ? warps * 32 * (1 + width / 8) : 0;
  return 16 * (std::max(stages, merged) + std::int64_t{rows()} * words);
}

int AttentionTile::registers(std::int64_t width) const {
  constexpr int kRest = 80, kMost = 255;
  return std::min(tall * (static_cast<int>(width) / 2 + order.keys / 2 + 12) + kRest, kMost);
}

double attention_bound(const TensorMachine& machine, const AttentionWork& w) {
  const double seen = static_cast<double>(w.rows) * static_cast<double>(w.past) +
                      static_cast<double>(w.rows * (w.rows + 1)) / 2;
  const double flops = 4 * static_cast<double>(w.sequences * w.heads * w.width) * seen;
  return std::max((bytes_of_rows(w) + bytes_of_keys(w)) / machine.bandwidth, flops / machine.flops);
}

AttentionTime attention_time(const TensorMachine& machine, const AttentionWork& work,
                             const AttentionTile& tile) {
  const std::int64_t resident =
      machine.resident(tile.threads(), tile.registers(work.width), tile.shared_bytes(work.width));
  if (resident == 0) return {std::numeric_limits<double>::infinity(), "shared memory", 0};
  const Loaded all = load(machine, work, tile, resident);
  const double at_once = static_cast<double>(std::min(resident, all.deep));
  const double stage =
      2.0 * tile.order.keys * tile.order.strands * static_cast<double>(work.width) * kElement;
  const double under_way = all.busy * at_once * stage;
  const double share = all.busy / machine.multiprocessors;
  const double parts = tile.order.parts;
  const double sums =
      parts == 1 ? 0
                 : static_cast<double>(work.sequences * work.rows * work.heads * (work.width + 4)) *
                       4 * parts;
  const double from_memory = bytes_of_rows(work) + bytes_of_keys(work);
  const std::array<AttentionTime, 3> bounds{{
      {from_memory / std::min(machine.bandwidth, under_way / kReadLatency), "memory", 0},
      {(all.bytes + bytes_of_rows(work) + sums) /
           std::min({machine.cache_bandwidth,
                     machine.cache_port() * machine.multiprocessors * share,
                     under_way / kCacheLatency}),
       "cache", 0},
      {all.most, all.bound, 0},
  }};
  AttentionTime out = *std::max_element(
      bounds.begin(), bounds.end(),
      [](const AttentionTime& a, const AttentionTime& b) { return a.seconds < b.seconds; });
  // A block waits for its table, then for its first keys; blocks beside it go on meanwhile.
  out.seconds += 2 * kReadLatency * static_cast<double>((all.deep + resident - 1) / resident);
  if (parts > 1) out.second_kernel = kNextKernel + kReadLatency + sums / machine.cache_bandwidth;
  out.seconds += out.second_kernel;
  return out;
}

AttentionTiles::Form AttentionTiles::of(std::int64_t rows) const {
  const auto found = std::find_if(chosen.begin(), chosen.end(),
                                  [&](const auto& entry) { return rows <= entry.first; });
  return found == chosen.end() ? chosen.back().second : found->second;
}

AttentionWork typical_work(std::int64_t rows, std::int64_t heads, std::int64_t groups,
                           std::int64_t width) {
  if (rows <= kFewRows) return {rows, 1, kTypicalKeys - 1, heads, groups, width};
  return {1, rows, 0, heads, groups, width};
}

AttentionTiles attention_tiles(const TensorMachine& machine, std::int64_t heads,
                               std::int64_t groups, std::int64_t width) {
  constexpr std::int64_t kLongRows = 16384;
  constexpr int kMostParts = 64;
  constexpr AttentionTile one{1, 1, {16, 4, 1}};
  AttentionTiles out{{one, one, one, {4, 1, {32, 1, 1}}, {4, 2, {32, 1, 1}}}, {}};
  // As many parts as give each multiprocessor a block of a step of one row, about; and a quarter.
  int& parts = out.all[AttentionTiles::kParts].order.parts;
  while (parts < kMostParts && parts * groups < machine.multiprocessors) parts *= 2;
  out.all[AttentionTiles::kFewParts].order.parts = std::max(parts / 4, 1);
  AttentionWork work = typical_work(1, heads, groups, width);
  const auto pays = [&](AttentionTiles::Form a, AttentionTiles::Form b) {
    return attention_time(machine, work, out.all[a]).seconds <
           attention_time(machine, work, out.all[b]).seconds;
  };
  const auto take = [&](AttentionTiles::Form form, AttentionTiles::Form next) {
    const std::int64_t before = work.sequences;
    while (work.sequences <= kFewRows && pays(form, next)) ++work.sequences;
    if (work.sequences > before) out.chosen.emplace_back(work.sequences - 1, form);
  };
  take(AttentionTiles::kParts, AttentionTiles::kFewParts);
  take(AttentionTiles::kFewParts, AttentionTiles::kOne);
  if (work.sequences <= kFewRows) out.chosen.emplace_back(kFewRows, AttentionTiles::kOne);
  work = typical_work(2 * kFewRows, heads, groups, width);
  while (work.rows <= kLongRows && pays(AttentionTiles::kLow, AttentionTiles::kTall))
    work.rows *= 2;
  if (work.rows > 2 * kFewRows) out.chosen.emplace_back(work.rows / 2, AttentionTiles::kLow);
  out.chosen.emplace_back(std::numeric_limits<std::int64_t>::max(), AttentionTiles::kTall);
  return out;
}

}  // namespace pw::cuda
