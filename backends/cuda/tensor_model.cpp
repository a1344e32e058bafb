// Exports ProductTile, ProductDivision, product_bound, product_time, product_tiles and choose_tile.
#include "backends/cuda/tensor_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/ceil_div.hpp"

namespace pw::cuda {
namespace {

constexpr std::int64_t kStepBytes = 128;  // of k

double flops_of(const TensorMachine& machine, const ProductShape& shape) {
  return shape.in_bytes == 1 ? machine.byte_flops : machine.flops;
}

/// What one block does.
struct BlockWork {
  double warps = 0, flops = 0;
  double read = 0;      ///< bytes that it reads
  double distinct = 0;  ///< its share of what is read from memory: all blocks' bytes, each once
  double results = 0, pieces = 0;  ///< bytes that it stores
  double piece_bandwidth = 0;      ///< of all blocks
  double shared = 0;               ///< bytes of shared memory, read and written
  double under_way = 0;            ///< bytes of reads that do not wait for another
};

/// Of the sums of the pieces of tiles that are cut.
double piece_bytes(const ProductShape& s, const ProductDivision& d) {
  return 4.0 * static_cast<double>(s.rows * s.columns * (d.pieces - d.whole)) /
         static_cast<double>(d.across);
}
/// Of the results of so many tiles of each row.
double result_bytes(const ProductShape& s, const ProductDivision& d, std::int64_t tiles) {
  return static_cast<double>(s.rows * s.columns * s.out_bytes * tiles) /
         static_cast<double>(d.across);
}

/// Where these sums lie between the two kernels: writes stay in the second-level cache,
/// as far as there is room.
struct PieceMemory {
  double bandwidth, latency;
};
PieceMemory piece_memory(const TensorMachine& machine, double bytes) {
  if (bytes <= machine.cache_bytes) return {machine.cache_bandwidth, kCacheLatency};
  return {machine.bandwidth, kReadLatency};
}

BlockWork work_of(const TensorMachine& machine, const ProductShape& s, const ProductTile& t,
                  const ProductDivision& division, double blocks) {
  const auto bytes =
      static_cast<double>(division.most_steps() * kStepBytes);  // of a row of a block
  BlockWork out;
  out.warps = static_cast<double>(t.threads()) / 32;
  out.flops = 2.0 * t.rows * t.columns * bytes / static_cast<double>(s.in_bytes);
  out.read = bytes * (t.rows + t.columns);
  out.distinct = static_cast<double>((s.rows + s.columns) * s.in_bytes * s.depth) / blocks;
  out.results = result_bytes(s, division, division.whole) / blocks;
  out.pieces = piece_bytes(s, division) / blocks;
  out.piece_bandwidth = piece_memory(machine, blocks * out.pieces).bandwidth;
  // Each warp loads its rows of a and its columns of b.
  out.shared = bytes * (t.rows + t.columns + t.rows * t.across + t.columns * t.down);
  out.under_way = static_cast<double>((t.stages - 1) * kStepBytes * (t.rows + t.columns));
  return out;
}

/// Sums are read while the results of these tiles go to memory.
double adding_seconds(const TensorMachine& machine, const ProductShape& s,
                      const ProductDivision& division) {
  const double bytes = piece_bytes(s, division);
  const PieceMemory memory = piece_memory(machine, bytes);
  return kNextKernel + memory.latency +
         std::max(bytes / memory.bandwidth,
                  result_bytes(s, division, division.across - division.whole) / machine.bandwidth);
}

/// The numbers of shares that are tried: those that give each tile, or each two tiles, equal parts,
/// and those that give each multiprocessor, or each place for a block on one, a share.
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

/// Of one wave: `on_one` blocks on each of `busy` multiprocessors. A block reads its rows of a and
/// its columns of b. Of what blocks of a wave read, each byte comes from memory once, and from the
/// second-level cache else. It begins with waiting for its first tile and ends with storing.
ProductTime wave_time(const TensorMachine& machine, const ProductShape& shape,
                      const BlockWork& block, double on_one, double busy) {
  const double share = machine.bandwidth / busy;
  const double cache = std::min(machine.cache_bandwidth / busy, machine.cache_port());
  const double under_way = on_one * block.under_way;
  const double rate = flops_of(machine, shape) / machine.multiprocessors *
                      std::min(1.0, on_one * block.warps / kFullWarps);
  const std::array<ProductTime, 4> all{{
      {on_one * block.distinct / std::min(share, under_way / kReadLatency), "memory", 0},
      {on_one * block.read / std::min(cache, under_way / kCacheLatency), "cache", 0},
      {on_one * block.shared / machine.shared_bandwidth(), "shared memory", 0},
      {on_one * block.flops / rate, "mma", 0},
  }};
  ProductTime out = longest(all);
  const double keep = std::min(block.piece_bandwidth / busy, machine.cache_port());
  out.seconds += kReadLatency + on_one * (block.results / share + block.pieces / keep);
  return out;
}

}  // namespace

int ProductTile::registers() const {
  constexpr int kRest = 48;
  const int tall = rows / down;
  return sums() + tall / 16 * 4 + 4 + kRest;
}

ProductDivision divided(const ProductShape& shape, const ProductTile& tile) {
  ProductDivision out;
  out.deep = ceil_div(shape.depth * shape.in_bytes, kStepBytes);
  out.across = ceil_div(shape.columns, tile.columns);
  out.shares = std::min(tile.shares == 0 ? out.across : tile.shares, out.steps());
  for (std::int64_t at = 0; at < out.across; ++at) {
    const std::int64_t pieces = out.pieces_of(at);
    out.pieces += pieces;
    out.most_pieces = std::max(out.most_pieces, pieces);
    out.whole += pieces == 1 ? 1 : 0;
  }
  return out;
}

std::int64_t resident(const TensorMachine& machine, const ProductTile& tile,
                      std::int64_t in_bytes) {
  const bool bytes = in_bytes == 1;
  if (bytes && tile.sums() > machine.byte_sums) return 0;
  return machine.resident(tile.threads(), tile.registers() + (bytes ? machine.byte_registers : 0),
                          tile.shared_bytes());
}

double product_bound(const TensorMachine& machine, const ProductShape& s) {
  const auto n = static_cast<double>(s.rows), k = static_cast<double>(s.depth),
             m = static_cast<double>(s.columns);
  const double bytes =
      (n * k + k * m) * static_cast<double>(s.in_bytes) + n * m * static_cast<double>(s.out_bytes);
  return std::max(bytes / machine.bandwidth, 2 * n * k * m / flops_of(machine, s));
}

ProductTime product_time(const TensorMachine& machine, const ProductShape& shape,
                         const ProductTile& tile) {
  const std::int64_t together = resident(machine, tile, shape.in_bytes);
  if (together == 0) return {std::numeric_limits<double>::infinity(), "shared memory", 0};
  const ProductDivision division = divided(shape, tile);
  const auto blocks = static_cast<double>(ceil_div(shape.rows, tile.rows) * division.shares);
  const BlockWork block = work_of(machine, shape, tile, division, blocks);
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
  if (division.cut()) out.second_kernel = adding_seconds(machine, shape, division);
  out.seconds += out.second_kernel;
  return out;
}

const std::vector<ProductTile>& product_tiles() {
  static const std::vector<ProductTile> tiles{
      {128, 256, 2, 4, 3}, {128, 256, 2, 4, 2}, {192, 192, 4, 2, 2}, {160, 192, 2, 4, 2},
      {192, 128, 4, 2, 3}, {192, 128, 4, 2, 2}, {128, 192, 2, 4, 3}, {128, 128, 2, 2, 3},
      {128, 128, 2, 4, 3}, {96, 128, 2, 2, 3},  {64, 256, 1, 4, 3},  {64, 256, 1, 4, 2},
      {64, 192, 1, 4, 3},  {64, 128, 1, 4, 4},  {128, 64, 2, 2, 4},  {64, 128, 2, 2, 4},
      {112, 128, 1, 4, 3}, {112, 64, 1, 4, 2},  {64, 64, 2, 2, 4},   {32, 64, 1, 4, 6},
      {16, 64, 1, 4, 6},   {16, 32, 1, 2, 8},
  };
  return tiles;
}

std::vector<ProductTile> ranked_tiles(const TensorMachine& machine, const ProductShape& shape) {
  std::vector<std::pair<double, ProductTile>> all;
  for (ProductTile tile : product_tiles()) {
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
  return fmt::format("{}x{}, {} x {} warps, {} stages{}", t.rows, t.columns, t.down, t.across,
                     t.stages, t.shares == 0 ? "" : fmt::format(", {} shares", t.shares));
}

}  // namespace pw::cuda
