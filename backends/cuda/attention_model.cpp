// Exports AttentionTile, AttentionTiles, attention_bound and attention_time.
#include "backends/cuda/attention_model.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include "base/ceil_div.hpp"

namespace pw::cuda {
namespace {

constexpr double kElement = 2;  // bytes
constexpr double kOfQuery = 16 * kElement;
constexpr std::int64_t kFewRows = 256, kTypicalKeys = 4096, kShortPrompt = 512;
constexpr std::int64_t kTypicalRows[] = {1,  2,  3,  4,   6,   8,   12,  16,   24,   32,
                                         48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096};
constexpr double kAsWell = 1.02;
// Instructions of a warp, counted in the machine code: for each score of a lane (mask, maximum,
// power, sum, half of a conversion), for each copy of 16 bytes, and for each block of keys.
constexpr double kOfScore = 8, kOfCopy = 10, kOfBlock = 150;

constexpr double kWordsUnderWay = 8;  // of 16 bytes, that a thread reads of parts at a time

/// Of one block of threads: blocks of keys are those of the tile's order.
struct KeysOfBlock {
  double seen = 0;    ///< keys that are read from memory
  double copied = 0;  ///< with those that fill the last blocks of all strands
  // Of the warp with most, of all its strands; keys are in sixteens that some row sees.
  double blocks = 0;       ///< of keys, that it goes through
  double tile_blocks = 0;  ///< those of its tiles of 16 rows, of each that sees some key of them
  double read = 0;         ///< keys
  double tile_read = 0;    ///< those of its tiles
  // Of all warps.
  double all_tile_blocks = 0, all_read = 0;
  KeysOfBlock& operator+=(const KeysOfBlock& b) {
    seen += b.seen;
    copied += b.copied;
    blocks += b.blocks;
    tile_blocks += b.tile_blocks;
    read += b.read;
    tile_read += b.tile_read;
    all_tile_blocks += b.all_tile_blocks;
    all_read += b.all_read;
    return *this;
  }
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

/// What a warp does itself takes as long as for the one with most keys; shared memory is read by
/// all.
BlockCost cost_of(const TensorMachine& machine, const AttentionWork& work,
                  const AttentionTile& tile, const KeysOfBlock& keys) {
  const auto width = static_cast<double>(work.width);
  const double pair = 2 * width * kElement;  // of a key and its value
  const double blocks = keys.blocks * tile.down, of_tiles = keys.tile_blocks * tile.down;
  const double read = keys.read * tile.down, scores = of_tiles * tile.order.keys * 16;
  const double multiply = 4 * keys.tile_read * tile.down * 16 * width;
  // Two fragments of 16 by 16 for each ldmatrix; an instruction multiplies 16 by 8 by 16.
  const double instructions = multiply / (2 * 16 * 8 * 16) + read * pair / 512 +
                              of_tiles * width / 16 + scores / 32 * kOfScore +
                              keys.copied * pair / 16 / 32 * kOfCopy + blocks * kOfBlock;
  BlockCost out;
  out.mma = multiply / (machine.flops / machine.multiprocessors);
  out.shared = ((keys.copied + keys.all_read) * pair + keys.all_tile_blocks * kOfQuery * width) /
               machine.shared_bandwidth();
  out.issue = instructions / machine.issue();
  out.bytes = keys.seen * pair;
  return out;
}

/// Tokens `first` to `last` of the sequence that begins with token `begin`.
struct TokenRun {
  std::int64_t first = 0, last = 0, begin = 0;
};

/// Keys of a run of tokens in a block whose first token is `token0`, of one part.
KeysOfBlock keys_of_run(const AttentionWork& work, const AttentionTile& tile, const TokenRun& run,
                        std::int64_t token0) {
  const std::int64_t share = work.heads / work.groups, strands = tile.order.strands;
  const std::int64_t all_strands = strands * tile.order.parts;
  const auto seen_before = [&](std::int64_t end) { return work.past + end - run.begin; };
  const auto blocks_of = [&](std::int64_t seen) { return ceil_div(seen, tile.order.keys); };
  // Of the strand, and the part, with most of them; of as many strands.
  const auto most_blocks_of = [&](std::int64_t seen) {
    return static_cast<double>(strands * ceil_div(blocks_of(seen), all_strands));
  };
  const auto sixteens_of = [](std::int64_t keys) {
    return ceil_div(keys, kKeysOfMma) * kKeysOfMma;
  };
  const auto most_read_of = [&](std::int64_t seen) {
    const std::int64_t round = tile.order.keys * all_strands, left = sixteens_of(seen % round);
    const std::int64_t rounds = seen / round;
    const std::int64_t read =
        strands * (rounds * tile.order.keys + std::min<std::int64_t>(left, tile.order.keys));
    return static_cast<double>(read);
  };
  const double parts = tile.order.parts;
  KeysOfBlock out;
  out.seen = static_cast<double>(seen_before(run.last)) / parts;
  out.copied = most_blocks_of(seen_before(run.last)) * tile.order.keys;
  for (int warp = 0; warp < tile.down; ++warp) {
    KeysOfBlock own;
    std::int64_t most = 0;
    for (int t = 0; t < tile.tall; ++t) {
      const std::int64_t row = tile.first_row(warp, t);
      const std::int64_t from = token0 + row / share, to = token0 + (row + 15) / share + 1;
      if (from >= run.last || to <= run.first) continue;
      const std::int64_t seen = seen_before(std::min(to, run.last));
      most = std::max(most, seen);
      own.tile_blocks += most_blocks_of(seen);
      own.tile_read += most_read_of(seen);
      out.all_tile_blocks += static_cast<double>(blocks_of(seen)) / parts;
    }
    out.blocks = std::max(out.blocks, most_blocks_of(most));
    out.tile_blocks = std::max(out.tile_blocks, own.tile_blocks);
    out.read = std::max(out.read, most_read_of(most));
    out.tile_read = std::max(out.tile_read, own.tile_read);
    out.all_read += static_cast<double>(sixteens_of(most)) / parts;
  }
  return out;
}

/// The keys of the block of the n-th tile of tokens: those of each sequence in it.
KeysOfBlock keys_of(const AttentionWork& work, const AttentionTile& tile, std::int64_t n) {
  const std::int64_t each = tile.tokens(work.heads / work.groups);
  const std::int64_t end = std::min((n + 1) * each, work.sequences * work.rows);
  KeysOfBlock out;
  for (std::int64_t first = n * each; first < end;) {
    const std::int64_t begin = first / work.rows * work.rows;
    const std::int64_t last = std::min(end, begin + work.rows);
    out += keys_of_run(work, tile, {first, last, begin}, n * each);
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

double bytes_of_keys(const AttentionWork& w) {
  return static_cast<double>(2 * w.sequences * (w.past + w.rows) * w.groups * w.width) * kElement;
}

double bytes_of_sums(const AttentionWork& w, const AttentionTile& tile) {
  if (tile.order.parts == 1) return 0;
  return static_cast<double>(w.sequences * w.rows * w.heads * (w.width + 4)) * 4 * tile.order.parts;
}

/// What the last block of each tile does when all parts are there.
double adding_time(const TensorMachine& machine, const AttentionWork& w,
                   const AttentionTile& tile) {
  if (tile.order.parts == 1) return 0;
  const std::int64_t each = tile.tokens(w.heads / w.groups);
  const std::int64_t adders = w.groups * ((w.sequences * w.rows + each - 1) / each);
  const double under_way = kWordsUnderWay * 16 * tile.threads() / kCacheLatency;
  const double busy = static_cast<double>(std::min<std::int64_t>(adders, machine.multiprocessors));
  return kAddingTrips * kCacheLatency +
         bytes_of_sums(w, tile) /
             std::min(machine.cache_bandwidth, busy * std::min(machine.cache_port(), under_way));
}

}  // namespace

std::int64_t AttentionTile::shared_bytes(std::int64_t width) const {
  const std::int64_t words = (width / 8 + 7) / 8 * 8, warps = std::int64_t{down} * order.strands;
  const std::int64_t stages = std::int64_t{4} * order.keys * order.strands * words;
  const std::int64_t merged = order.strands > 1 ? warps * 32 * (1 + width / 8) : 0;
  return 16 * (std::max(stages, merged) + std::int64_t{rows()} * words);
}

int AttentionTile::first_row(int warp, int t) const {
  return 16 * (t * down + (t % 2 == 0 ? warp : down - 1 - warp));
}

int AttentionTile::registers(std::int64_t width) const {
  constexpr int kRest = 80, kMost = 255;
  return std::min(tall * (static_cast<int>(width) / 2 + order.keys / 2 + 12) + kRest, kMost);
}

double bytes_of_rows(const AttentionWork& w) {
  return static_cast<double>(2 * w.sequences * w.rows * w.heads * w.width) * kElement;
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
  const double sums = bytes_of_sums(work, tile);
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
  AttentionTime out = longest(bounds);
  // A block waits for its table, then for its first keys; blocks beside it go on meanwhile. Where
  // tiles share a sequence, those that begin later find table, pages and keys in the cache.
  const std::int64_t waits = ceil_div(all.deep, resident) - 1;
  const bool cached = work.rows > tile.tokens(work.heads / work.groups) &&
                      bytes_of_keys(work) + bytes_of_rows(work) <= machine.cache_bytes;
  const std::int64_t fresh = cached ? std::min(waits, work.sequences - 1) : waits;
  out.seconds += 2 * kReadLatency * static_cast<double>(1 + fresh) +
                 3 * kCacheLatency * static_cast<double>(waits - fresh);
  out.adding = adding_time(machine, work, tile);
  out.seconds += out.adding;
  return out;
}

std::size_t AttentionTiles::of(std::int64_t rows) const {
  const auto found = std::find_if(chosen.begin(), chosen.end(),
                                  [&](const auto& entry) { return rows <= entry.first; });
  return found == chosen.end() ? chosen.back().second : found->second;
}

AttentionWork typical_work(std::int64_t rows, std::int64_t heads, std::int64_t groups,
                           std::int64_t width) {
  if (rows <= kFewRows) return {rows, 1, kTypicalKeys - 1, heads, groups, width};
  return {1, rows, 0, heads, groups, width};
}

std::vector<AttentionTile> attention_candidates(const TensorMachine& machine, std::int64_t rows,
                                                std::int64_t groups) {
  if (rows > kFewRows)
    return {{4, 1, {32, 1, 1}}, {4, 1, {64, 1, 1}}, {4, 1, {32, 2, 1}}, {3, 1, {16, 3, 1}},
            {2, 2, {16, 4, 1}}, {2, 2, {32, 2, 1}}, {2, 2, {32, 4, 1}}, {2, 2, {48, 2, 1}},
            {4, 2, {48, 1, 1}}, {4, 2, {32, 2, 1}}, {4, 2, {48, 2, 1}}};
  std::vector<AttentionTile> out;
  for (int parts : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}) {
    if (parts > 1 && parts * rows * groups > 4 * machine.multiprocessors) break;
    for (const auto& [keys, strands] : {std::pair{16, 4}, std::pair{32, 4}, std::pair{16, 8}})
      out.push_back({1, 1, {keys, strands, parts}});
  }
  return out;
}

AttentionTiles attention_tiles(const TensorMachine& machine, std::int64_t heads,
                               std::int64_t groups, std::int64_t width) {
  AttentionTiles out;
  for (const std::int64_t rows : kTypicalRows) {
    std::vector<AttentionWork> works{typical_work(rows, heads, groups, width)};
    if (rows > kShortPrompt)
      works.push_back({rows / kShortPrompt, kShortPrompt, 0, heads, groups, width});
    const auto times_bound = [&](const AttentionTile& tile) {
      double sum = 0;
      for (const AttentionWork& work : works)
        sum += attention_time(machine, work, tile).seconds / attention_bound(machine, work);
      return sum;
    };
    double least = std::numeric_limits<double>::infinity();
    AttentionTile best;
    for (const AttentionTile& tile : attention_candidates(machine, rows, groups))
      if (const double sum = times_bound(tile); sum < least) {
        least = sum;
        best = tile;
      }
    const bool alike =
        !out.chosen.empty() && (rows > kFewRows) == (out.chosen.back().first > kFewRows);
    if (alike && times_bound(out.all.back()) <= kAsWell * least) {
      out.chosen.back().first = rows;
      continue;
    }
    out.chosen.emplace_back(rows, out.all.size());
    out.all.push_back(best);
  }
  out.chosen.back().first = std::numeric_limits<std::int64_t>::max();
  return out;
}

}  // namespace pw::cuda
