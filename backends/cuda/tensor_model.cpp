// Exports ProductTile, ProductDivision, product_bound, product_time, product_tiles and choose_tile.
#include "backends/cuda/tensor_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace pw::cuda {
namespace {

constexpr std::int64_t kStepBytes = 128;  // of k

std::int64_t quotient(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

double flops_of(const TensorMachine& machine, const ProductShape& shape) {
  return shape.in_bytes == 1 ? machine.byte_flops : machine.flops;
}

/// What one block does.
struct BlockWork {
  double warps = 0, flops = 0;
  double read = 0;      ///< bytes that it reads
  double distinct = 0;  ///< its share of what is read from memory: all blocks' bytes, each once
  double stored = 0;
  double shared = 0;     ///< bytes of shared memory, read and written
  double under_way = 0;  ///< bytes of reads that do not wait for another
};

/// Of the sums of all pieces.
double piece_bytes(const ProductShape& s, const ProductDivision& d) {
  return 4.0 * static_cast<double>(s.rows * s.columns * d.pieces) / static_cast<double>(d.across);
}

BlockWork work_of(const ProductShape& s, const ProductTile& t, const ProductDivision& division,
                  double blocks) {
  const auto bytes =
      static_cast<double>(division.most_steps() * kStepBytes);  // of a row of a block
  const double row = static_cast<double>(division.steps()) / static_cast<double>(division.shares);
  BlockWork out;
  out.warps = t.threads() / 32;
  out.flops = 2.0 * t.rows * t.columns * bytes / static_cast<double>(s.in_bytes);
  out.read = row * kStepBytes * (t.rows + t.columns);  // caches are all blocks': as the mean has it
  out.distinct = static_cast<double>((s.rows + s.columns) * s.in_bytes * s.depth) / blocks;
  out.stored = (division.cut() ? piece_bytes(s, division)
                               : static_cast<double>(s.rows * s.columns * s.out_bytes)) /
               blocks;
  // Each warp loads its rows of a and its columns of b.
  out.shared = bytes * (t.rows + t.columns + t.rows * t.across + t.columns * t.down);
  out.under_way = static_cast<double>((t.stages - 1) * kStepBytes * (t.rows + t.columns));
  return out;
}

/// The sums of pieces are in the second-level cache, the results go to memory.
double adding_seconds(const TensorMachine& machine, const ProductShape& s,
                      const ProductDivision& division) {
  return kNextKernel + kReadLatency +
         std::max(piece_bytes(s, division) / machine.cache_bandwidth,
                  static_cast<double>(s.rows * s.columns * s.out_bytes) / machine.bandwidth);
}

/// The numbers of shares that are tried: those that give each tile equal parts, and those that give
/// each multiprocessor, or each place for a block on one, a share.
std::set<std::int64_t> numbers_of_shares(const TensorMachine& machine, const ProductShape& shape,
                                         const ProductTile& tile) {
  constexpr std::int64_t kParts = 16, kLeastSteps = 2;
  const std::int64_t resident =
      machine.resident(tile.threads(), tile.registers(), tile.shared_bytes());
  const ProductDivision whole = divided(shape, tile);
  std::set<std::int64_t> out;
  for (std::int64_t parts = 2; parts <= kParts; ++parts) out.insert(parts * whole.across);
  for (std::int64_t on_one = 1; on_one <= resident; ++on_one)
    out.insert(machine.multiprocessors * on_one / quotient(shape.rows, tile.rows));
  out.erase(out.upper_bound(whole.steps() / kLeastSteps), out.end());
  out.erase(0);
  out.insert(whole.across);
  return out;
}

/// Of one wave: `on_one` blocks on each of `busy` multiprocessors. A block reads its rows of a and
/// its columns of b. Of what blocks of a wave read, each byte comes from memory once, and from the
/// second-level cache else. It begins with waiting for its first tile and ends with storing.
ProductTime wave_time(const TensorMachine& machine, const ProductShape& shape, bool cut,
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
  ProductTime out = *std::max_element(
      all.begin(), all.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  out.seconds += kReadLatency + on_one * block.stored / (cut ? cache : share);
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
  out.deep = quotient(shape.depth * shape.in_bytes, kStepBytes);
  out.across = quotient(shape.columns, tile.columns);
  out.shares = std::min(tile.shares == 0 ? out.across : tile.shares, out.steps());
  out.pieces = out.across;
  for (std::int64_t share = 1; share < out.shares; ++share)
    out.pieces += out.begin(share) % out.deep == 0 ? 0 : 1;
  for (std::int64_t tile_at = 0; out.cut() && tile_at < out.across; ++tile_at)
    out.most_pieces = std::max(out.most_pieces, out.share_of((tile_at + 1) * out.deep - 1) -
                                                    out.share_of(tile_at * out.deep) + 1);
  return out;
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
  const std::int64_t resident =
      machine.resident(tile.threads(), tile.registers(), tile.shared_bytes());
  const bool local = shape.in_bytes == 1 && tile.sums() > machine.byte_sums;
  if (resident == 0 || local) return {std::numeric_limits<double>::infinity(), "shared memory", 0};
  const ProductDivision division = divided(shape, tile);
  const auto blocks = static_cast<double>(quotient(shape.rows, tile.rows) * division.shares);
  const BlockWork block = work_of(shape, tile, division, blocks);
  const double all = machine.multiprocessors, on_one = blocks / all;
  const double waves = std::floor(on_one / static_cast<double>(resident));
  const double rest = on_one - waves * static_cast<double>(resident);
  ProductTime out =
      wave_time(machine, shape, division.cut(), block, static_cast<double>(resident), all);
  out.seconds *= waves;
  if (rest > 0) {
    const ProductTime last = wave_time(machine, shape, division.cut(), block, std::ceil(rest),
                                       std::min(all, std::max(1.0, rest * all)));
    if (waves == 0) out.bound = last.bound;
    out.seconds += last.seconds;
  }
  if (division.cut()) out.second_kernel = adding_seconds(machine, shape, division);
  out.seconds += out.second_kernel;
  return out;
}

const std::vector<ProductTile>& product_tiles() {
  static const std::vector<ProductTile> tiles{
      {128, 256, 2, 4, 3}, {128, 256, 2, 4, 2}, {192, 192, 3, 3, 2}, {160, 192, 2, 4, 2},
      {192, 128, 4, 2, 3}, {192, 128, 4, 2, 2}, {128, 192, 2, 4, 3}, {128, 128, 2, 2, 3},
      {128, 128, 2, 4, 3}, {96, 128, 2, 2, 3},  {64, 256, 1, 4, 3},  {64, 256, 1, 4, 2},
      {64, 192, 1, 4, 3},  {64, 128, 1, 4, 4},  {128, 64, 2, 2, 4},  {64, 128, 2, 2, 4},
      {112, 64, 1, 4, 2},  {64, 64, 2, 2, 4},   {32, 64, 1, 4, 6},   {16, 64, 1, 4, 6},
      {16, 32, 1, 2, 8},
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
