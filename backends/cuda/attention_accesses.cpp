// Exports put_accesses, attend_accesses, tensor_attention_accesses, add_attended_accesses and
// tables_of.
#include "backends/cuda/attention_accesses.hpp"

#include <algorithm>

namespace pw::cuda {
namespace {

using Array = AccessesByData::Array;

constexpr std::int64_t kNumber = 8;  // bytes of an element of a table
constexpr std::int64_t kWord = 16;   // that tensor cores' operands move by
constexpr std::int64_t kSums = 8;    // two neighbouring sums, and the largest score and the weights
// Arguments of the kernels that attend.
constexpr std::size_t kQueries = 0, kKeys = 1, kValues = 2, kTables = 3, kSeen = 4, kPages = 5,
                      kDivisor = 6;  // or the sums of parts, or the results

std::int64_t whole(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit; }

/// Rows of one sequence in the tile of tokens from `first` on, and the most keys that one sees.
struct Run {
  std::int64_t rows = 0, limit = 0;
};

Run run_from(Array tables, Array seen, std::int64_t first, std::int64_t end) {
  const auto at = [](Array of, std::int64_t i) { return of[static_cast<std::size_t>(i)]; };
  Run out;
  for (std::int64_t i = first; i < end && at(tables, i) == at(tables, first); ++i) {
    ++out.rows;
    out.limit = std::max(out.limit, at(seen, i));
  }
  return out;
}

/// Of all groups and parts of a tile of tokens.
class TileCounter {
 public:
  TileCounter(const AttentionSizes& sizes, const AttentionTile& tile, LaunchAccesses& out)
      : sizes_(sizes), tile_(tile), out_(out), share_(sizes.heads / sizes.groups) {}

  /// What a block does once; `tokens` of the tile are there.
  void begin(std::int64_t tokens) {
    const std::int64_t words = sizes_.width / 8;
    out_.add_global(kQueries, false, kWord, blocks() * tokens * share_ * words);
    out_.add_shared(true, kWord, blocks() * tile_.rows() * words);
  }
  /// A sequence in it; `last`: no other follows.
  void add(const Run& run, bool last) {
    const std::int64_t of_lanes = run.rows * share_ * 4;  // those that have a row
    out_.add_global(kTables, false, kNumber, blocks() * threads() * (run.rows + (last ? 0 : 1)),
                    threads());
    out_.add_global(kSeen, false, kNumber,
                    blocks() * (threads() * run.rows + of_lanes * tile_.order.strands), threads());
    keys(run.limit);
    if (tile_.order.strands > 1) strands();
    finish(of_lanes);
  }

 private:
  [[nodiscard]] std::int64_t threads() const { return tile_.threads(); }
  [[nodiscard]] std::int64_t blocks() const { return sizes_.groups * tile_.order.parts; }

  void keys(std::int64_t limit) {
    const std::int64_t words = sizes_.width / 8, steps = sizes_.width / 16;
    const std::int64_t step = std::int64_t{tile_.order.keys} * tile_.order.strands;
    const std::int64_t rounds = sizes_.groups * whole(limit, step),
                       fragments = tile_.order.keys / 16;
    const std::int64_t taken = sizes_.groups * limit * words;
    out_.add_global(kPages, false, kNumber, taken, words);
    out_.add_global(kKeys, false, kWord, taken);
    out_.add_global(kValues, false, kWord, taken);
    out_.add_shared(true, kWord, 2 * rounds * step * words);
    out_.add_shared(false, kWord,
                    rounds * threads() * (steps * (tile_.tall + fragments) + fragments * steps));
  }

  void strands() {
    const std::int64_t each = 1 + sizes_.width / 8;
    out_.add_shared(true, kWord, blocks() * threads() * each);
    // Those of the first strand read the largest scores of all, then all of all.
    out_.add_shared(false, kWord, blocks() * threads() * (1 + each));
  }

  void finish(std::int64_t lanes) {
    const std::int64_t pairs = blocks() * lanes * (sizes_.width / 8);
    if (tile_.order.parts > 1) {
      out_.add_global(kDivisor, true, kSums, pairs + blocks() * lanes / 4);
      return;
    }
    if (sizes_.divisor > 0) out_.add_global(kDivisor, false, sizes_.divisor, 2 * pairs, threads());
    out_.add_global(kDivisor + (sizes_.divisor > 0 ? 1 : 0), true, 2 * sizes_.out, pairs);
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
            std::int64_t keys = 0, rounds = 0;  // of all rows and heads
            for (std::int64_t i = 0; i < rows / sizes.heads; ++i) {
              const std::int64_t seen = data[0][static_cast<std::size_t>(i)];
              keys += seen * sizes.heads;
              rounds += whole(seen, threads) * sizes.heads;
            }
            const std::int64_t each = keys * sizes.width, results = rows * sizes.width;
            out.add_global(kTables, false, kNumber, rows * threads, threads);
            out.add_global(kSeen, false, kNumber, rows * threads, threads);
            // Each score is computed twice, by one thread; a value's place by all.
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
            const std::int64_t each = tile.tokens(sizes.heads / sizes.groups);
            for (std::int64_t token = 0; token < rows; token += each) {
              const std::int64_t end = std::min(token + each, rows);
              counter.begin(end - token);
              for (std::int64_t first = token; first < end;) {
                const Run run = run_from(data[0], data[1], first, end);
                first += run.rows;
                counter.add(run, first == end);
              }
            }
          }};
}

std::vector<AccessNode> add_attended_accesses(const AttentionSizes& sizes, int parts, int threads,
                                              int column_blocks) {
  std::vector<AccessNode> out;
  // Of threads that have four columns.
  const auto access = [&](std::size_t argument, std::int64_t bytes, std::int64_t times,
                          bool write = false) {
    AccessNode node;
    node.argument = argument;
    node.bytes = static_cast<int>(bytes);
    node.times = sizes.heads * sizes.width / 4 * times;
    node.one_of = std::int64_t{threads} * column_blocks;
    node.write = write;
    out.push_back(node);
  };
  access(0, kNumber, 1);
  access(1, 4, std::int64_t{3} * parts);
  access(1, kWord, parts);
  if (sizes.divisor > 0) access(2, sizes.divisor, 4);
  access(sizes.divisor > 0 ? 3 : 2, 2 * sizes.out, 2, true);
  return out;
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
