// Counts the accesses of the attention kernels. The counters replay the control flow of the kernels
// over the step's tables, block by block, without computing scores: runs of tokens that share a
// table, key blocks that a warp does not skip, and the addition of strands and parts.
//
// Invariant: the result equals the emulator's count, so each change to a loop of the kernels
// requires one here. Cost: linear in the rows of a step, times the key blocks of a warp.
#include "cuda/kernels/attention/attention_accesses.hpp"

#include <algorithm>
#include <limits>

#include "base/division.hpp"

namespace pw::cuda {
namespace {

using Array = AccessesByData::Array;

constexpr std::int64_t kNumber = 8;  // bytes of a table element
constexpr std::int64_t kCount = 4;   // bytes of an arrival counter
constexpr std::int64_t kWord = 16;   // bytes that operands of tensor cores are moved by
constexpr std::int64_t kPair = 8;    // bytes of two sums, or of a base and a weight sum
// Arguments of the attention kernels.
constexpr std::size_t kQueries = 0, kKeys = 1, kValues = 2, kTables = 3, kSeen = 4, kPages = 5,
                      kDivisor = 6;  // or the results

/// Tokens of one sequence that a thread block processes together.
struct Run {
  TokenRange block;  ///< all tokens of the block
  TokenRange of;     ///< tokens of the sequence
  Array seen;
  [[nodiscard]] std::int64_t tokens() const { return of.last - of.first; }
  /// Returns the tokens of this block that remain.
  [[nodiscard]] std::int64_t left() const { return block.last - of.first; }
  /// Returns the most keys that a token of this run in the range sees.
  [[nodiscard]] std::int64_t most(std::int64_t from, std::int64_t to) const {
    std::int64_t out = 0;
    for (std::int64_t i = std::max(from, of.first); i < std::min(to, of.last); ++i)
      out = std::max(out, seen[static_cast<std::size_t>(i)]);
    return out;
  }
  /// Returns the fewest keys.
  [[nodiscard]] std::int64_t least(std::int64_t from, std::int64_t to) const {
    std::int64_t out = std::numeric_limits<std::int64_t>::max();
    for (std::int64_t i = std::max(from, of.first); i < std::min(to, of.last); ++i)
      out = std::min(out, seen[static_cast<std::size_t>(i)]);
    return out;
  }
};

/// Returns the end of the run of tokens from `first` on that share a table.
std::int64_t end_of_run(Array tables, std::int64_t first, std::int64_t end) {
  const auto table = [&](std::int64_t i) { return tables[static_cast<std::size_t>(i)]; };
  std::int64_t out = first;
  while (out < end && table(out) == table(first)) ++out;
  return out;
}

/// Counts a tile of tokens, over all groups and parts.
class TileCounter {
 public:
  TileCounter(const AttentionSizes& sizes, const AttentionTile& tile, LaunchAccesses& out)
      : sizes_(sizes), tile_(tile), out_(out), share_(sizes.heads / sizes.groups) {}

  /// Adds a thread block, for all groups and parts.
  void add(const TokenRange& block, Array tables, Array seen) {
    const std::int64_t tokens = block.last - block.first;
    begin(tokens);
    for (std::int64_t first = block.first; first < block.last;) {
      const std::int64_t last = end_of_run(tables, first, block.last);
      add({block, {first, last}, seen});
      first = last;
    }
    end(tokens);
  }

 private:
  /// Adds the work at a block's start; `tokens` is the number of the tile's tokens.
  void begin(std::int64_t tokens) {
    const std::int64_t words = sizes_.width / 8;
    out_.add_global(kQueries, false, kWord, blocks() * tokens * share_ * words);
    out_.add_shared(true, kWord, blocks() * tile_.rows() * words);
  }
  /// Adds a sequence of the block.
  void add(const Run& run) {
    const std::int64_t of_lanes = run.tokens() * share_ * 4;  // lanes with a row
    const std::int64_t warps = threads() / 32, looked_at = blocks() * warps * run.left();
    out_.add_global(kTables, false, kNumber, blocks() * threads(), threads());
    out_.add_global(kTables, false, kNumber, looked_at, warps);
    out_.add_global(kSeen, false, kNumber, looked_at, warps);
    if (tile_.grouped) {
      // Lanes read the tables of their own rows, and all warps those of their group.
      out_.add_global(kSeen, false, kNumber, blocks() * 2 * of_lanes, threads());
      keys_of_groups(run);
      return finish(of_lanes);
    }
    const std::int64_t at_end = tile_.order.parts == 1 ? 1 : 0;
    out_.add_global(kSeen, false, kNumber, blocks() * of_lanes * (tile_.order.strands + at_end),
                    threads());
    out_.add_shared(false, kWord, blocks() * threads() * tile_.tall * (sizes_.width / 16));
    keys(run);
    if (tile_.order.strands > 1) strands();
    finish(of_lanes);
  }

  /// Adds split-KV's end: the last block of each group adds the parts of `tokens` tokens, four
  /// columns a thread.
  void end(std::int64_t tokens) {
    if (tile_.order.parts == 1) return;
    out_.add_global(result() + 2, false, kCount, blocks());
    out_.add_global(result() + 2, true, kCount, blocks() + sizes_.groups);
    out_.add_shared(true, kWord, blocks());
    out_.add_shared(false, kWord, blocks() * threads());
    const std::int64_t fours = tokens * sizes_.heads * sizes_.width / 4;
    const std::int64_t of_parts = fours * tile_.order.parts;
    out_.add_global(kSeen, false, kNumber, fours, sizes_.width / 4);
    out_.add_global(result() + 1, false, 4, of_parts, sizes_.width / 4);
    out_.add_global(result() + 1, false, kPair, of_parts, sizes_.width / 4);
    out_.add_global(result() + 1, false, kWord, of_parts);
    results(2 * fours);
  }

  [[nodiscard]] std::int64_t threads() const { return tile_.threads(); }
  [[nodiscard]] std::int64_t blocks() const { return sizes_.groups * tile_.order.parts; }

  /// Each key is copied once, together with those that complete sixteen.
  void keys(const Run& run) {
    const std::int64_t limit = run.most(run.of.first, run.of.last), words = sizes_.width / 8;
    const std::int64_t taken = sizes_.groups * limit * words;
    if (const std::int64_t at_a_time = tile_.keys_at_a_time(sizes_.width, sizes_.page_tokens)) {
      const std::int64_t pages = sizes_.groups * ceil_div(limit, sizes_.page_tokens);
      const std::int64_t lanes = std::min(at_a_time, sizes_.page_tokens) * words;
      out_.add_global(kPages, false, kNumber, pages * lanes, lanes);
    } else {
      out_.add_global(kPages, false, kNumber, taken, words);
    }
    out_.add_global(kKeys, false, kWord, taken);
    out_.add_global(kValues, false, kWord, taken);
    out_.add_shared(true, kWord,
                    2 * sizes_.groups * ceil_div(limit, kKeysOfMma) * kKeysOfMma * words);
    for (int warp = 0; warp < tile_.down; ++warp) of_warps(run, warp);
  }

  /// Warpgroups multiply whole key blocks, which are filled completely: 64 queries and a key block
  /// by 16 columns, and a block's values by 16 keys.
  void keys_of_groups(const Run& run) {
    const std::int64_t limit = run.most(run.of.first, run.of.last), words = sizes_.width / 8,
                       block = tile_.order.keys;
    const std::int64_t taken = sizes_.groups * limit * words;
    out_.add_global(kPages, false, kNumber, 2 * taken, 2 * words);
    out_.add_global(kKeys, false, kWord, taken);
    out_.add_global(kValues, false, kWord, taken);
    out_.add_shared(true, kWord, 2 * sizes_.groups * ceil_div(limit, block) * block * words);
    const std::int64_t of_block =
        sizes_.width / 16 * 2 * (kGroupRows + block) + block / 16 * 2 * sizes_.width;
    for (std::int64_t row = 0; row < tile_.rows(); row += kGroupRows) {
      const std::int64_t from = run.block.first + row / share_,
                         to = run.block.first + (row + kGroupRows - 1) / share_ + 1;
      out_.add_shared(false, kWord, sizes_.groups * ceil_div(run.most(from, to), block) * of_block);
    }
  }

  /// Adds the reads of the warps with equal rows, over all groups, strands and parts.
  void of_warps(const Run& run, int warp) {
    const std::int64_t begin = run.block.first, steps = sizes_.width / 16;
    std::int64_t most = 0, least = std::numeric_limits<std::int64_t>::max(), own = 0;
    for (int t = 0; t < tile_.tall; ++t) {
      const std::int64_t row = tile_.first_row(warp, t);
      const std::int64_t from = begin + row / share_, to = begin + (row + 15) / share_ + 1;
      const std::int64_t of_tile = run.most(from, to);
      most = std::max(most, of_tile);
      least = of_tile == 0 ? 0 : std::min(least, run.least(from, to));
      own += std::max<std::int64_t>(0, std::min(row + 16, (run.of.last - begin) * share_) -
                                           std::max(row, (run.of.first - begin) * share_));
    }
    out_.add_shared(false, kWord, sizes_.groups * 32 * steps * 2 * ceil_div(most, kKeysOfMma));
    if (own == 0) return;
    const std::int64_t cut = ceil_div(most, tile_.order.keys) - least / tile_.order.keys;
    out_.add_global(kSeen, false, kNumber, sizes_.groups * cut * own * 4, threads());
  }

  /// One strand adds each tile of rows: the others store theirs, and it reads all bases, then all
  /// sums.
  void strands() {
    const std::int64_t each = 1 + sizes_.width / 8;
    const std::int64_t lanes =
        std::int64_t{tile_.tall} * tile_.down * 32 * (tile_.order.strands - 1);
    out_.add_shared(true, kWord, blocks() * lanes * each);
    out_.add_shared(false, kWord, blocks() * lanes * (1 + each));
  }

  void finish(std::int64_t lanes) {
    const std::int64_t pairs = blocks() * lanes * (sizes_.width / 8);
    if (tile_.order.parts > 1)
      out_.add_global(result() + 1, true, kPair, pairs + blocks() * lanes / 4);
    else
      results(pairs);
  }

  [[nodiscard]] std::size_t result() const { return kDivisor + (sizes_.divisor > 0 ? 1 : 0); }

  /// Adds the results, two neighbours each.
  void results(std::int64_t pairs) {
    if (sizes_.divisor > 0) out_.add_global(kDivisor, false, sizes_.divisor, 2 * pairs, threads());
    out_.add_global(result(), true, 2 * sizes_.out, pairs);
  }

  const AttentionSizes& sizes_;
  const AttentionTile& tile_;
  LaunchAccesses& out_;
  std::int64_t share_;
};

}  // namespace

AccessesByData put_accesses(const AttentionSizes& sizes, int threads) {
  const std::int64_t each = sizes.groups * sizes.width;
  return {{2}, [=](std::int64_t rows, std::span<const Array> data, LaunchAccesses& out) {
            const auto placed = std::count_if(data[0].begin(), data[0].begin() + rows,
                                              [](std::int64_t slot) { return slot >= 0; });
            out.add_global(2, false, kNumber, rows * threads, threads);
            for (const bool write : {false, true}) {
              out.add_global(write ? 3 : 0, write, sizes.k, placed * each);
              out.add_global(write ? 4 : 1, write, sizes.v, placed * each);
            }
          }};
}

AccessesByData attend_accesses(const AttentionSizes& sizes, int threads) {
  return {{kSeen}, [=](std::int64_t rows, std::span<const Array> data, LaunchAccesses& out) {
            std::int64_t keys = 0, rounds = 0;  // totals over rows and heads
            for (std::int64_t i = 0; i < rows / sizes.heads; ++i) {
              const std::int64_t seen = data[0][static_cast<std::size_t>(i)];
              keys += seen * sizes.heads;
              rounds += ceil_div(seen, threads) * sizes.heads;
            }
            const std::int64_t each = keys * sizes.width, results = rows * sizes.width;
            out.add_global(kTables, false, kNumber, rows * threads, threads);
            out.add_global(kSeen, false, kNumber, rows * threads, threads);
            // Each score is computed twice, by one thread; all threads look up a value's place.
            out.add_global(kQueries, false, sizes.q, 2 * each);
            out.add_global(kKeys, false, sizes.k, 2 * each);
            out.add_global(kPages, false, kNumber, 2 * keys);
            out.add_global(kPages, false, kNumber, threads * keys, threads);
            out.add_global(kValues, false, sizes.v, each);
            if (sizes.divisor > 0) out.add_global(kDivisor, false, sizes.divisor, results, threads);
            out.add_global(kDivisor + (sizes.divisor > 0 ? 1 : 0), true, sizes.out, results);
            out.add_shared(true, 4, threads * (rows + rounds));
            out.add_shared(false, 4, threads * (rows * threads + keys));
          }};
}

AccessesByData tensor_attention_accesses(const AttentionSizes& sizes, const AttentionTile& tile) {
  return {{kTables, kSeen},
          [=](std::int64_t rows, std::span<const Array> data, LaunchAccesses& out) {
            TileCounter counter(sizes, tile, out);
            const std::int64_t share = sizes.heads / sizes.groups;
            for (std::int64_t n = 0; n < ceil_div(rows, tile.tokens(share)); ++n)
              counter.add(tokens_of_block(tile, share, rows, n), data[0], data[1]);
          }};
}

StepTables tables_of(const AttentionWork& work) {
  StepTables out;
  for (std::int64_t i = 0; i < work.sequences * work.rows; ++i) {
    out.tables.push_back(i / work.rows * work.rows);
    out.seen.push_back(work.past + i % work.rows + 1);
  }
  return out;
}

}  // namespace pw::cuda
