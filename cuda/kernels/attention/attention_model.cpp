// The cost model of attention: list scheduling of thread blocks onto multiprocessors. A block's
// cost is a vector of resource times (multiplications, shared memory, instruction issue, memory),
// combined in a p-norm; blocks go in launch order to the least loaded multiprocessor.
//
// Invariant: keys are counted as in the kernel, with the same runs, skipped blocks and strand
// order, so that an error of the model is in its constants and not in its counts. The constants are
// fitted to measurements (attention_model.hpp). Cost: O(B log M) for B thread blocks and M
// multiprocessors.
#include "cuda/kernels/attention/attention_model.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include <fmt/format.h>

#include "base/division.hpp"

namespace pw::cuda {
namespace {

constexpr double kElement = 2;  // bytes
constexpr double kOfQuery = 16 * kElement;
constexpr int kWarpsOfGroup = 4;
// Fitted like kOfScore: exponent of the norm that combines two activities of a single warp in each
// quarter of a multiprocessor.
constexpr double kAlone = 1.3;
// Instructions of a warp of a warpgroup in addition to the weights of scores, counted in the
// machine code of sm_90: for a key block, and for a copied word with its page look-up. Their stalls
// are assumed to be those of other warps. Not measured: groups that take turns. Groups that met
// after each key block took 1.3 times the model's time on an H200 (4096 and more tokens).
constexpr double kOfGroupStep = 180, kOfGroupCopy = 6;
constexpr double kStrandsMeet = 40e-9;  // seconds of a barrier, as in machine.cpp

// Reached fraction of a multiprocessor's cache rate while parts are added; fitted.
constexpr double kPartsPort = 0.23 / kReachedPort;
constexpr double kWordsUnderWay = 8;  // words of 16 bytes of parts that a thread reads at a time

double bytes_of_keys(const AttentionWork& w) {
  return static_cast<double>(2 * w.sequences * (w.past + w.rows) * w.groups * w.width) * kElement;
}

/// The keys of one thread block; key blocks follow the tile's order. The work of warps is that of
/// all warps and strands, as if each had as much as the busiest one.
struct KeysOfBlock {
  double seen = 0;         ///< keys read from memory
  double copied = 0;       ///< in sixteens, like all counts below
  double tile_blocks = 0;  ///< key blocks of tiles of 16 rows that see at least one of the keys
  double read = 0;         ///< keys
  double tile_read = 0;    ///< keys read for their tiles
  double all_read = 0;     ///< keys that all warps actually read
  double tiles = 0;        ///< tiles of 16 rows
  double waits = 0;        ///< seconds until the first keys arrive
};

/// The times of one thread block on an otherwise idle multiprocessor, in seconds.
struct BlockCost {
  double mma = 0, shared = 0, issue = 0, meeting = 0, waits = 0, bytes = 0;
  BlockCost& operator+=(const BlockCost& b) {
    mma += b.mma;
    shared += b.shared;
    issue += b.issue;
    meeting += b.meeting;
    bytes += b.bytes;
    return *this;
  }
  /// Sequential activities of a warp overlap with other warps, if there are any.
  [[nodiscard]] double most(bool alone) const {
    const std::array<TimeTerm, 3> terms{{{shared, ""}, {mma, ""}, {issue, ""}}};
    return waits + meeting + combined(terms, alone ? kAlone : kTogether);
  }
};

/// Returns the maximum number of adding warps in one quarter of a multiprocessor.
int most_adders(const AttentionTile& tile) {
  std::array<int, kFullWarps> adders{};
  for (int row = 0; row < tile.down; ++row)
    for (int t = 0; t < tile.tall; ++t)
      ++adders[static_cast<std::size_t>((row * tile.order.strands + t % tile.order.strands) %
                                        kFullWarps)];
  return *std::max_element(adders.begin(), adders.end());
}

/// Returns the cost of combining strands: all store their words of the tiles that others add, then
/// one strand adds each tile.
BlockCost cost_of_strands(const TensorMachine& machine, double width, const AttentionTile& tile,
                          double tiles) {
  BlockCost out;
  const double others = tile.order.strands - 1;
  if (others == 0) return out;
  const double words = 1 + width / 8;  // words of a lane
  // Bases are read twice; a sum is multiplied and added.
  out.shared = tiles * others * (2 * words + 1) * 512 / machine.shared_bandwidth();
  const double adding = width / 2 + others * (words + 1 + width);
  out.issue = tiles * others * words / machine.issue() + most_adders(tile) * adding / machine.clock;
  out.meeting = kStrandsMeet;
  return out;
}

/// Returns the instructions of warpgroups for the key blocks of their warps, and of the warps that
/// copy.
double instructions_of_groups(const AttentionTile& tile, const KeysOfBlock& keys, double width) {
  const double of_step = kCountedOfWeight * tile.order.keys * 16 / 32 + kOfGroupStep;
  const double copies = 2 * keys.copied * width / 8 / 32;  // of warps
  return kWaiting * (keys.tile_blocks * of_step + kOfGroupCopy * copies);
}

/// Returns the cost of a block. A warp's own work takes as long as for the warp with the most keys;
/// shared memory is read by all.
BlockCost cost_of(const TensorMachine& machine, const AttentionWork& work,
                  const AttentionTile& tile, const KeysOfBlock& keys) {
  const auto width = static_cast<double>(work.width);
  const double pair = 2 * width * kElement;  // bytes of a key and its value
  const double scores = keys.tile_blocks * tile.order.keys * 16;
  const double multiply = 4 * keys.tile_read * 16 * width;
  // An ldmatrix loads two fragments of 16 by 16; an instruction multiplies 16 by 8 by 16.
  const double instructions =
      tile.grouped ? instructions_of_groups(tile, keys, width)
                   : multiply / (2 * 16 * 8 * 16) + keys.read * pair / 512 + scores / 32 * kOfScore;
  // Queries are written, and each strand reads them once; the reads of warpgroups are counted with
  // the keys.
  const double queries =
      keys.tiles * kOfQuery * width * (1 + (tile.grouped ? 0 : tile.order.strands));
  BlockCost out = cost_of_strands(machine, width, tile, keys.tiles);
  out.mma = multiply / (tile.grouped ? machine.multiplied_by_groups(2 * kFullWarps)
                                     : machine.multiplied(machine.flops, 2 * kFullWarps));
  out.shared += ((keys.copied + keys.all_read) * pair + queries) / machine.shared_bandwidth();
  out.issue += instructions / (kIssued * machine.issue());
  out.waits = keys.waits;
  out.bytes = keys.seen * pair;
  return out;
}

/// Counts the keys of a block's tiles of tokens.
class KeyCounter {
 public:
  KeyCounter(const TensorMachine& machine, const AttentionWork& work, const AttentionTile& tile)
      : work_(work),
        tile_(tile),
        share_(work.heads / work.groups),
        all_strands_(std::int64_t{tile.order.strands} * tile.order.parts),
        // Later tiles of a sequence find table, pages and keys in the cache, if it has room for
        // this sequence and the previous one.
        cached_(attention_bytes(work) / static_cast<double>(work.sequences) <=
                machine.cache_bytes / 2) {}

  [[nodiscard]] KeysOfBlock of_block(std::int64_t n) const {
    const TokenRange all = tokens_of_block(tile_, share_, work_.sequences * work_.rows, n);
    KeysOfBlock out;
    for (std::int64_t first = all.first; first < all.last;) {
      const std::int64_t begin = begin_of(first);
      const TokenRange run{first, std::min(all.last, begin + work_.rows)};
      add_run(run, all.first, begin, out);
      add_copies(work_.past + run.last - begin, out);
      first = run.last;
    }
    return out;
  }

 private:
  [[nodiscard]] std::int64_t begin_of(std::int64_t token) const {
    return token / work_.rows * work_.rows;
  }
  [[nodiscard]] static std::int64_t sixteens_of(std::int64_t keys) {
    return ceil_div(keys, kKeysOfMma) * kKeysOfMma;
  }
  /// Returns the key blocks of the strand and part that have the most.
  [[nodiscard]] double most_blocks_of(std::int64_t seen) const {
    return static_cast<double>(tile_.order.strands *
                               ceil_div(ceil_div(seen, tile_.order.keys), all_strands_));
  }
  [[nodiscard]] double most_read_of(std::int64_t seen) const {
    const std::int64_t round = tile_.order.keys * all_strands_, left = sixteens_of(seen % round);
    const std::int64_t of_strand =
        seen / round * tile_.order.keys + std::min<std::int64_t>(left, tile_.order.keys);
    return static_cast<double>(tile_.order.strands * of_strand);
  }

  void add_copies(std::int64_t seen, KeysOfBlock& out) const {
    const double parts = tile_.order.parts;
    out.seen += static_cast<double>(seen) / parts;
    out.copied += (tile_.grouped ? most_blocks_of(seen) * tile_.order.keys
                                 : static_cast<double>(sixteens_of(seen))) /
                  parts;
    const bool fresh = !cached_ || seen == work_.past + work_.rows;
    out.waits += fresh ? kFirstWait : 3 * kCacheLatency;
  }

  /// Adds tokens of one sequence that begins with token `begin`, in the block from `token0` on.
  void add_run(const TokenRange& run, std::int64_t token0, std::int64_t begin,
               KeysOfBlock& out) const {
    KeysOfBlock of_most;
    for (int warp = 0; warp < tile_.down; ++warp) {
      KeysOfBlock own;
      std::int64_t most = 0;
      for (int t = 0; t < tile_.tall; ++t) {
        // A warpgroup multiplies the keys that any of its rows sees.
        const std::int64_t row = tile_.grouped ? warp / kWarpsOfGroup * kGroupRows
                                               : std::int64_t{tile_.first_row(warp, t)};
        const std::int64_t rows = tile_.grouped ? kGroupRows : kGroupRows / kWarpsOfGroup;
        const std::int64_t from = token0 + row / share_,
                           to = token0 + (row + rows - 1) / share_ + 1;
        if (from >= run.last || to <= run.first) continue;
        const std::int64_t seen = work_.past + std::min(to, run.last) - begin;
        most = std::max(most, seen);
        own.tile_blocks += most_blocks_of(seen);
        own.tile_read +=
            tile_.grouped ? most_blocks_of(seen) * tile_.order.keys : most_read_of(seen);
        ++out.tiles;
      }
      of_most.tile_blocks = std::max(of_most.tile_blocks, own.tile_blocks);
      of_most.tile_read = std::max(of_most.tile_read, own.tile_read);
      if (tile_.grouped) {
        // A group reads its queries for each key block: two of them have the size of a key and its
        // value.
        out.all_read += most_blocks_of(most) *
                        (static_cast<double>(tile_.order.keys) + kGroupRows / 2.0) / kWarpsOfGroup;
        continue;
      }
      of_most.read = std::max(of_most.read, most_read_of(most));
      out.all_read += static_cast<double>(sixteens_of(most)) / tile_.order.parts;
    }
    out.tile_blocks += of_most.tile_blocks * tile_.down;
    out.read += of_most.read * tile_.down;
    out.tile_read += of_most.tile_read * tile_.down;
  }

  const AttentionWork& work_;
  const AttentionTile& tile_;
  std::int64_t share_, all_strands_;
  bool cached_;
};

struct Loaded {
  double most = 0;   ///< seconds of the busiest multiprocessor
  double waits = 0;  ///< waiting seconds of that multiprocessor
  std::string_view bound;
  double bytes = 0;       ///< bytes read by all blocks
  std::int64_t deep = 0;  ///< blocks on that multiprocessor
  double busy = 0;        ///< multiprocessors with a block
};

/// Assigns blocks to the least loaded multiprocessor in launch order: the last tile of tokens
/// first, for all groups and parts, then the tile before it.
Loaded load(const TensorMachine& machine, const AttentionWork& work, const AttentionTile& tile,
            std::int64_t resident) {
  const auto alone = [&](std::int64_t at_once) {
    return at_once * tile.threads() / 32 < 2 * kFullWarps;
  };
  const KeyCounter counter(machine, work, tile);
  const std::int64_t tiles =
      ceil_div(work.sequences * work.rows, tile.tokens(work.heads / work.groups));
  std::vector<BlockCost> costs;
  for (std::int64_t n = 0; n < tiles; ++n)
    costs.push_back(cost_of(machine, work, tile, counter.of_block(n)));
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
      // The first blocks wait together; while a later block waits, its neighbours proceed.
      const double waits = blocks[i] < resident ? cost.waits - kFirstWait : cost.waits;
      on[i].waits += std::max(0.0, waits) / static_cast<double>(resident);
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
    out.waits = c.waits;
    out.deep = blocks[i];
    out.bound = c.mma >= c.shared && c.mma >= c.issue ? "mma"
                : c.shared >= c.issue                 ? "shared memory"
                                                      : "issue";
  }
  return out;
}

double bytes_of_sums(const AttentionWork& w, const AttentionTile& tile) {
  if (tile.order.parts == 1) return 0;
  return static_cast<double>(w.sequences * w.rows * w.heads * (w.width + 4)) * 4 * tile.order.parts;
}

/// Returns the seconds in which the last block of each tile adds the parts.
double adding_time(const TensorMachine& machine, const AttentionWork& w,
                   const AttentionTile& tile) {
  if (tile.order.parts == 1) return 0;
  const std::int64_t each = tile.tokens(w.heads / w.groups);
  const std::int64_t adders = w.groups * ((w.sequences * w.rows + each - 1) / each);
  const double under_way = kWordsUnderWay * 16 * tile.threads() / kCacheLatency;
  const double busy = static_cast<double>(std::min<std::int64_t>(adders, machine.multiprocessors));
  return kAddingTrips * kCacheLatency +
         bytes_of_sums(w, tile) /
             std::min(machine.cache_bandwidth,
                      busy * std::min(kPartsPort * machine.cache_port(), under_way));
}

}  // namespace

std::int64_t AttentionTile::keys_at_a_time(std::int64_t width, std::int64_t page_tokens) const {
  constexpr std::int64_t kAlike = 8;  // rows of shared memory with equal word permutation
  const std::int64_t words = width / 8;
  if (threads() % (kAlike * words) != 0) return 0;
  const std::int64_t at_a_time = threads() / words,
                     block = std::int64_t{order.keys} * order.strands;
  const std::int64_t unit = order.parts == 1 ? block * deep : block;
  const bool fit = page_tokens % at_a_time == 0 || at_a_time % page_tokens == 0;
  return fit && unit % at_a_time == 0 && unit % page_tokens == 0 ? at_a_time : 0;
}

std::int64_t AttentionTile::shared_bytes(std::int64_t width) const {
  const std::int64_t words = (width / 8 + 7) / 8 * 8;
  const std::int64_t stages = std::int64_t{4} * order.keys * order.strands * deep * words;
  const std::int64_t added = std::int64_t{down} * tall * (order.strands - 1) * 32 * (1 + width / 8);
  return 16 * (std::max(stages, added) + std::int64_t{rows()} * words);
}

int AttentionTile::first_row(int warp, int t) const {
  return 16 * (t * down + (t % 2 == 0 ? warp : down - 1 - warp));
}

int AttentionTile::registers(std::int64_t width) const {
  constexpr int kRest = 64, kMost = 255;  // in addition to sums, queries and scores
  constexpr int kRestOfGroups = 48;       // in addition to sums, scores and weights
  constexpr int kAll = 65536, kUnit = 8;  // registers of a multiprocessor, and of an allocation
  if (grouped && down > kWarpsOfGroup) return kAll / threads() / kUnit * kUnit;
  if (grouped) return static_cast<int>(width) / 2 + order.keys * 3 / 4 + kRestOfGroups;
  return std::min(tall * (static_cast<int>(width) * 3 / 4 + order.keys / 2) + kRest, kMost);
}

bool AttentionTile::fits(const TensorMachine& machine, std::int64_t width) const {
  return !grouped || (machine.group_flops != 0 && (width == 64 || width == 128));
}

std::string described(const AttentionTile& tile) {
  const std::string groups =
      tile.grouped ? fmt::format(", {} warpgroup{}", tile.down / 4, tile.down > 4 ? "s" : "") : "";
  const std::string tokens = tile.together > 1 ? fmt::format(", {} tokens", tile.together) : "";
  return fmt::format("{} rows, {} x {} keys, {} parts{}{}", tile.rows(), tile.order.strands,
                     tile.order.keys, tile.order.parts, tokens, groups);
}

TokenRange tokens_of_block(const AttentionTile& tile, std::int64_t share, std::int64_t tokens,
                           std::int64_t n) {
  const std::int64_t each = tile.tokens(share), first = (ceil_div(tokens, each) - 1 - n) * each;
  return {first, std::min(first + each, tokens)};
}

double bytes_of_rows(const AttentionWork& w) {
  return static_cast<double>(2 * w.sequences * w.rows * w.heads * w.width) * kElement;
}

double attention_bytes(const AttentionWork& w) { return bytes_of_rows(w) + bytes_of_keys(w); }

double attention_bound(const TensorMachine& machine, const AttentionWork& w) {
  const double seen = static_cast<double>(w.rows) * static_cast<double>(w.past) +
                      static_cast<double>(w.rows * (w.rows + 1)) / 2;
  const double flops = 4 * static_cast<double>(w.sequences * w.heads * w.width) * seen;
  return std::max(attention_bytes(w) / machine.bandwidth, flops / machine.most_flops());
}

AttentionTime attention_time(const TensorMachine& machine, const AttentionWork& work,
                             const AttentionTile& tile) {
  const std::int64_t resident =
      machine.resident(tile.threads(), tile.registers(work.width), tile.shared_bytes(work.width));
  if (resident == 0) return {std::numeric_limits<double>::infinity(), "shared memory", 0};
  const Loaded all = load(machine, work, tile, resident);
  const double at_once = static_cast<double>(std::min(resident, all.deep));
  const double stage = 2.0 * tile.order.keys * tile.order.strands * tile.deep *
                       static_cast<double>(work.width) * kElement;
  // While blocks wait, others on the same multiprocessor request keys; the wait of a single block
  // is not hidden.
  const double asking = at_once > 1 ? 1 - all.waits / all.most : 1;
  const double under_way = all.busy * at_once * asking * stage;
  const double waits = at_once > 1 ? 0 : all.waits;
  const double share = all.busy / machine.multiprocessors;
  const double sums = bytes_of_sums(work, tile);
  const double from_memory = attention_bytes(work);
  const double demand = under_way / kLoadedLatency;
  const std::array<AttentionTime, 3> bounds{{
      {from_memory / std::min(machine.read_bandwidth(), demand) + waits, "memory", 0},
      {(all.bytes + bytes_of_rows(work) + sums) /
               std::min({machine.cache_bandwidth,
                         machine.cache_port() * machine.multiprocessors * share, demand}) +
           waits,
       "cache", 0},
      {all.most, all.bound, 0},
  }};
  AttentionTime out = longest(bounds);
  out.seconds = combined(bounds);
  out.adding = adding_time(machine, work, tile);
  out.seconds += kFirstWait + out.adding;
  return out;
}

}  // namespace pw::cuda
