// The cost model of products: a roofline for each wave of blocks. A wave's time combines the times
// of multiplications, memory, second-level cache and shared memory in a p-norm (`combined`), and
// adds the first latency and the final stores. The model ranks tiles and divisions by exhaustive
// search over product_tiles() and numbers_of_shares().
//
// Invariant: every tile in the ranking can be launched, that is, its registers and shared memory
// fit. The constants are fitted to measurements (tensor_machine.hpp). Cost: a closed formula for
// each tile and number of shares.
#include "cuda/kernels/matmul/tensor_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/division.hpp"

namespace pw::cuda {
namespace {

constexpr std::int64_t kStepBytes = 128;  // bytes of k

double flops_of(const TensorMachine& machine, const ProductShape& shape) {
  return shape.in_bytes == 1 ? machine.byte_flops : machine.flops;
}

/// The work of one block.
struct BlockWork {
  double warps = 0, flops = 0;
  bool grouped = false;
  double read = 0;  ///< bytes read
  /// Its share of the bytes from memory, where each byte counts once for all blocks.
  double distinct = 0;
  double results = 0;    ///< bytes stored
  double shared = 0;     ///< bytes of shared memory, read and written
  double under_way = 0;  ///< bytes of reads in flight
};

/// Returns the bytes of the results of `tiles` tiles of each row.
double result_bytes(const ProductShape& s, const ProductDivision& d, std::int64_t tiles) {
  return static_cast<double>(s.rows * s.columns * s.out_bytes * tiles) /
         static_cast<double>(d.across);
}

BlockWork work_of(const ProductShape& s, const ProductTile& t, const ProductDivision& division,
                  double blocks) {
  const auto bytes = static_cast<double>(division.most_steps() * kStepBytes);  // per row of a block
  BlockWork out;
  out.warps = static_cast<double>(t.threads()) / 32;
  out.flops = 2.0 * t.rows * t.columns * bytes / static_cast<double>(s.in_bytes);
  const auto read_rows = static_cast<double>(std::min<std::int64_t>(s.rows, t.rows) + t.columns);
  out.read = bytes * read_rows;
  out.distinct = static_cast<double>((s.rows + s.columns) * s.in_bytes * s.depth) / blocks;
  out.results = result_bytes(s, division, division.whole) / blocks;
  out.grouped = t.grouped;
  // Each warp, or warpgroup, loads its rows of a and its columns of b.
  out.shared = bytes * (t.rows + t.columns + t.rows * t.across + t.columns * t.down_loads());
  // One step is being multiplied; with warpgroups two are.
  out.under_way = static_cast<double>((t.stages - (t.grouped ? 2 : 1)) * kStepBytes) * read_rows;
  return out;
}

/// Returns true if rows of a, and of b in its layout, are whole words of 16 bytes.
bool of_words(const ProductShape& s) {
  constexpr std::int64_t kWord = 16;
  return s.depth * s.in_bytes % kWord == 0 && s.columns * s.in_bytes % kWord == 0;
}

/// Returns the numbers of shares to try: those that give each tile, or each two tiles, equal parts,
/// and those that give each multiprocessor, or each resident block, one share.
std::set<std::int64_t> numbers_of_shares(const TensorMachine& machine, const ProductShape& shape,
                                         const ProductTile& tile) {
  constexpr std::int64_t kParts = 16, kLeastSteps = 2;
  const ProductDivision whole = divided(shape, tile);
  std::set<std::int64_t> out;
  for (std::int64_t halves = 3; halves <= 2 * kParts; ++halves)
    out.insert(halves * whole.across / 2);
  for (std::int64_t on_one = 1; on_one <= resident(machine, tile, shape.in_bytes); ++on_one)
    out.insert(machine.multiprocessors * on_one / ceil_div(shape.rows, tile.rows));
  out.erase(out.upper_bound(whole.steps() / kLeastSteps), out.end());
  out.erase(0);
  out.insert(whole.across);
  return out;
}

/// Returns the time of one wave: `on_one` blocks on each of `busy` multiprocessors. A block reads
/// its rows of a and its columns of b. Of the bytes that a wave reads, each comes from memory once
/// and from the second-level cache otherwise. The wave begins with the wait for the first tile and
/// ends with stores.
ProductTime wave_time(const TensorMachine& machine, const ProductShape& shape,
                      const BlockWork& block, double on_one, double busy) {
  const double share = machine.read_bandwidth() / busy;
  const double cache = std::min(machine.cache_bandwidth / busy, machine.cache_port());
  const double demand = on_one * block.under_way / kLoadedLatency;
  const double warps = on_one * block.warps;
  const double rate = block.grouped ? machine.multiplied_by_groups(warps)
                                    : machine.multiplied(flops_of(machine, shape), warps);
  const std::array<ProductTime, 4> all{{
      {on_one * block.distinct / std::min(share, demand), "memory", 0},
      {on_one * block.read / std::min(cache, demand), "cache", 0},
      {on_one * block.shared / machine.shared_bandwidth(), "shared memory", 0},
      {on_one * block.flops / rate, "mma", 0},
  }};
  ProductTime out = longest(all);
  out.seconds = kReadLatency + combined(all) + on_one * block.results / share;
  return out;
}

/// Returns the maximum that a block reads of other blocks' pieces, in sums of a tile. Concurrent
/// blocks divide a tile; otherwise the last of its blocks adds all of it.
double most_read(const ProductTile& tile, const ProductDivision& d, bool together) {
  const std::int64_t groups = squares_of(tile, d.most_pieces).groups();
  double out = 0;
  for (std::int64_t t = 0; t < d.across; ++t) {
    if (d.pieces_of(t) == 1) continue;
    const double own =
        static_cast<double>(ceil_div(groups, d.adders_of(t))) / static_cast<double>(groups);
    out = std::max(out, static_cast<double>(d.pieces_of(t) - 1) * (together ? own : 1.0));
  }
  return out;
}

/// Returns the seconds after a wave's pieces end: sums reach the cache, are counted, the count is
/// seen, and other sums are read.
double adding_seconds(const TensorMachine& machine, const ProductTile& tile,
                      const ProductDivision& division, double blocks, bool together) {
  const double sums = 4.0 * tile.rows * tile.columns;
  const double on_one = std::ceil(blocks / machine.multiprocessors);
  return kMeeting + on_one * sums * (1 + most_read(tile, division, together)) /
                        (kAddingPort * machine.cache_port());
}

}  // namespace

int ProductTile::registers() const {
  constexpr int kRest = 48, kGroupRest = 40;
  if (grouped) return sums() + kGroupRest;
  const int tall = rows / down;
  return sums() + tall / 16 * 4 + 4 + kRest;
}

/// Computes the shares, the maximum number of pieces of a tile, and the number of undivided tiles
/// of a row.
ProductDivision divided(const ProductShape& shape, const ProductTile& tile) {
  ProductDivision out;
  out.deep = ceil_div(shape.depth * shape.in_bytes, kStepBytes);
  out.across = ceil_div(shape.columns, tile.columns);
  out.shares = std::min({tile.shares == 0 ? out.across : tile.shares, out.steps(),
                         (ProductDivision::kMostPieces - 1) * out.across});
  for (std::int64_t at = 0; at < out.across; ++at) {
    const std::int64_t pieces = out.pieces_of(at);
    out.pieces += pieces;
    out.most_pieces = std::max(out.most_pieces, pieces);
    out.whole += pieces == 1 ? 1 : 0;
  }
  return out;
}

TileSquares squares_of(const ProductTile& tile, std::int64_t most_pieces) {
  constexpr std::int64_t kBeside = 24;  // registers
  // Squares of other blocks' sums for which a thread has registers in addition to its own.
  const std::int64_t of_thread = std::min(255, 65536 / tile.threads() / 8 * 8);
  const std::int64_t most =
      tile.grouped        ? std::clamp<std::int64_t>((of_thread - tile.sums() - kBeside) / 8, 1, 6)
      : tile.sums() > 144 ? 2
      : tile.sums() > 128 ? 3
                          : 6;
  const std::int64_t others = std::max<std::int64_t>(most_pieces - 1, 1);
  TileSquares out;
  out.all = tile.sums() / 8;
  out.together = std::clamp<std::int64_t>(std::min<std::int64_t>(most, 4) / others, 1, out.all);
  out.at_once = std::min(others, most / out.together);
  return out;
}

std::int64_t resident(const TensorMachine& machine, const ProductTile& tile,
                      std::int64_t in_bytes) {
  const bool bytes = in_bytes == 1;
  if (!tile.fits(machine, in_bytes)) return 0;
  if (bytes && tile.sums() > machine.byte_sums) return 0;
  return machine.resident(tile.threads(), tile.registers() + (bytes ? machine.byte_registers : 0),
                          tile.shared_bytes());
}

double product_bound(const TensorMachine& machine, const ProductShape& s) {
  const auto n = static_cast<double>(s.rows), k = static_cast<double>(s.depth),
             m = static_cast<double>(s.columns);
  const double bytes =
      (n * k + k * m) * static_cast<double>(s.in_bytes) + n * m * static_cast<double>(s.out_bytes);
  const double flops = s.in_bytes == 1 ? machine.byte_flops : machine.most_flops();
  return std::max(bytes / machine.bandwidth, 2 * n * k * m / flops);
}

ProductTime product_time(const TensorMachine& machine, const ProductShape& shape,
                         const ProductTile& tile) {
  const std::int64_t together = resident(machine, tile, shape.in_bytes);
  if (together == 0) return {std::numeric_limits<double>::infinity(), "shared memory", 0};
  const ProductDivision division = divided(shape, tile);
  const auto blocks = static_cast<double>(ceil_div(shape.rows, tile.rows) * division.shares);
  const BlockWork block = work_of(shape, tile, division, blocks);
  const double all = machine.multiprocessors, on_one = blocks / all;
  const double waves = std::floor(on_one / static_cast<double>(together));
  const double rest = on_one - waves * static_cast<double>(together);
  ProductTime out = wave_time(machine, shape, block, static_cast<double>(together), all);
  out.seconds *= waves;
  if (rest > 0) {
    const ProductTime last =
        wave_time(machine, shape, block, std::ceil(rest), std::min(all, std::max(1.0, rest * all)));
    if (waves == 0) out.bound = last.bound;
    out.seconds += last.seconds;
  }
  if (division.cut()) {
    const bool at_once = waves + (rest > 0 ? 1 : 0) == 1;
    const double wave = std::min(blocks, all * static_cast<double>(together));
    out.adding =
        adding_seconds(machine, tile, division, wave, at_once) * (waves + (rest > 0 ? 1 : 0));
    out.seconds += out.adding;
  }
  return out;
}

const std::vector<ProductTile>& product_tiles() {
  static const std::vector<ProductTile> tiles{
      // wgmma: one block per multiprocessor with all of its shared memory, some with half of it.
      {192, 256, 12, 1, 4, 0, true},
      {128, 256, 8, 1, 4, 0, true},
      {192, 192, 12, 1, 4, 0, true},
      {192, 128, 12, 1, 5, 0, true},
      {128, 192, 8, 1, 5, 0, true},
      {128, 128, 8, 1, 6, 0, true},
      {128, 128, 8, 1, 3, 0, true},
      {64, 256, 4, 1, 5, 0, true},
      {64, 192, 4, 1, 7, 0, true},
      {64, 192, 4, 1, 3, 0, true},
      {64, 128, 4, 1, 9, 0, true},
      {64, 128, 4, 1, 4, 0, true},
      {64, 64, 4, 1, 12, 0, true},
      {64, 64, 4, 1, 6, 0, true},
      {128, 96, 8, 1, 7, 0, true},
      {64, 96, 4, 1, 9, 0, true},
      {128, 48, 8, 1, 9, 0, true},
      {64, 48, 4, 1, 12, 0, true},
      {64, 32, 4, 1, 12, 0, true},
      // mma.
      {128, 256, 2, 4, 3},
      {128, 256, 2, 4, 2},
      {192, 192, 4, 2, 2},
      {160, 192, 2, 4, 2},
      {192, 128, 4, 2, 3},
      {192, 128, 4, 2, 2},
      {128, 192, 2, 4, 3},
      {128, 128, 2, 2, 3},
      {128, 128, 2, 4, 3},
      {96, 128, 2, 2, 3},
      {64, 256, 1, 4, 3},
      {64, 256, 1, 4, 2},
      {64, 192, 1, 4, 3},
      {64, 128, 1, 4, 4},
      {128, 64, 2, 2, 4},
      {64, 128, 2, 2, 4},
      {112, 192, 1, 4, 2},
      {112, 128, 1, 4, 3},
      {112, 64, 1, 4, 2},
      {64, 64, 2, 2, 4},
      {32, 64, 1, 4, 10},
      {32, 64, 1, 4, 6},
      {16, 64, 1, 4, 12},
      {16, 64, 1, 4, 6},
      {16, 32, 1, 2, 16},
      {16, 32, 1, 2, 8},
  };
  return tiles;
}

std::vector<ProductTile> ranked_tiles(const TensorMachine& machine, const ProductShape& shape) {
  std::vector<std::pair<double, ProductTile>> all;
  for (ProductTile tile : product_tiles()) {
    if (tile.words_only() && !of_words(shape)) continue;
    const std::int64_t across = divided(shape, tile).across;
    for (std::int64_t shares : numbers_of_shares(machine, shape, tile)) {
      tile.shares = shares == across ? 0 : static_cast<int>(shares);
      const double seconds = product_time(machine, shape, tile).seconds;
      if (std::isfinite(seconds)) all.emplace_back(seconds, tile);
      tile.shares = 0;
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ProductTile> out;
  for (const auto& [seconds, tile] : all) out.push_back(tile);
  return out;
}

ProductTile choose_tile(const TensorMachine& machine, const ProductShape& shape) {
  const std::vector<ProductTile> all = ranked_tiles(machine, shape);
  return all.empty() ? product_tiles().back() : all.front();
}

std::string described(const ProductTile& t) {
  const std::string warps = t.grouped
                                ? fmt::format("{} warpgroup{}", t.down / 4, t.down > 4 ? "s" : "")
                                : fmt::format("{} x {} warps", t.down, t.across);
  return fmt::format("{}x{}, {}, {} stages{}", t.rows, t.columns, warps, t.stages,
                     t.shares == 0 ? "" : fmt::format(", {} shares", t.shares));
}

}  // namespace pw::cuda
