// Exports ProductTile, product_bound, product_time, product_tiles and choose_tile.
#include "backends/cuda/tensor_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace pw::cuda {
namespace {

constexpr std::array<int, 10> kProductParts{1, 2, 3, 4, 5, 6, 8, 9, 12, 16};
constexpr double kBytesOfK = 128;  // of k

double count_of(std::int64_t a, std::int64_t b) { return static_cast<double>((a + b - 1) / b); }

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

BlockWork work_of(const ProductShape& s, const ProductTile& t, double blocks) {
  const auto tiles = static_cast<double>(tiles_of_part(s, t.parts));
  const auto depth = static_cast<double>(s.depth);
  BlockWork out;
  out.warps = t.threads() / 32;
  out.flops = 2.0 * t.rows * t.columns * tiles * kBytesOfK / static_cast<double>(s.in_bytes);
  out.read = tiles * kBytesOfK * (t.rows + t.columns);
  out.distinct = static_cast<double>((s.rows + s.columns) * s.in_bytes) * depth / blocks;
  out.stored = static_cast<double>(s.rows * s.columns) *
               static_cast<double>(t.parts == 1 ? s.out_bytes : 4 * t.parts) / blocks;
  // Each warp loads its rows of a and its columns of b.
  out.shared = out.read + tiles * kBytesOfK * (t.rows * t.across + t.columns * t.down);
  out.under_way = (t.stages - 1) * kBytesOfK * (t.rows + t.columns);
  return out;
}

/// The sums of parts are in the second-level cache, the results go to memory.
double adding_seconds(const TensorMachine& machine, const ProductShape& s, int parts) {
  const auto count = static_cast<double>(s.rows * s.columns);
  return kNextKernel + kReadLatency +
         std::max(count * 4 * parts / machine.cache_bandwidth,
                  count * static_cast<double>(s.out_bytes) / machine.bandwidth);
}

/// Of one wave: `on_one` blocks on each of `busy` multiprocessors. A block reads its rows of a and
/// its columns of b. Of what blocks of a wave read, each byte comes from memory once, and from the
/// second-level cache else. It begins with waiting for its first tile and ends with storing.
ProductTime wave_time(const TensorMachine& machine, const ProductShape& shape,
                      const ProductTile& tile, const BlockWork& block, double on_one, double busy) {
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
  out.seconds += kReadLatency + on_one * block.stored / (tile.parts == 1 ? share : cache);
  return out;
}

}  // namespace

int ProductTile::registers() const {
  constexpr int kRest = 48;
  const int tall = rows / down;
  return sums() + tall / 16 * 4 + 4 + kRest;
}

std::int64_t tiles_of_part(const ProductShape& shape, int parts) {
  const auto all = static_cast<std::int64_t>(count_of(shape.depth * shape.in_bytes, 128));
  return (all + parts - 1) / parts;
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
  const double blocks =
      count_of(shape.rows, tile.rows) * count_of(shape.columns, tile.columns) * tile.parts;
  const BlockWork block = work_of(shape, tile, blocks);
  const double all = machine.multiprocessors, on_one = blocks / all;
  const double waves = std::floor(on_one / static_cast<double>(resident));
  const double rest = on_one - waves * static_cast<double>(resident);
  ProductTime out = wave_time(machine, shape, tile, block, static_cast<double>(resident), all);
  out.seconds *= waves;
  if (rest > 0) {
    const ProductTime last = wave_time(machine, shape, tile, block, std::ceil(rest),
                                       std::min(all, std::max(1.0, rest * all)));
    if (waves == 0) out.bound = last.bound;
    out.seconds += last.seconds;
  }
  if (tile.parts > 1) out.second_kernel = adding_seconds(machine, shape, tile.parts);
  out.seconds += out.second_kernel;
  return out;
}

const std::vector<ProductTile>& product_tiles() {
  static const std::vector<ProductTile> tiles{
      {128, 256, 2, 4, 3}, {128, 256, 2, 4, 2}, {192, 128, 4, 2, 3}, {192, 128, 4, 2, 2},
      {128, 192, 2, 4, 3}, {128, 128, 2, 2, 3}, {128, 128, 2, 4, 3}, {96, 128, 2, 2, 3},
      {64, 256, 1, 4, 3},  {64, 256, 1, 4, 2},  {64, 128, 1, 4, 4},  {128, 64, 2, 2, 4},
      {64, 128, 2, 2, 4},  {64, 64, 2, 2, 4},   {32, 64, 1, 4, 6},   {16, 64, 1, 4, 6},
      {16, 32, 1, 2, 8},
  };
  return tiles;
}

std::vector<ProductTile> ranked_tiles(const TensorMachine& machine, const ProductShape& shape) {
  std::vector<std::pair<double, ProductTile>> all;
  for (ProductTile tile : product_tiles())
    for (int parts : kProductParts) {
      // A part has tiles of k, each but the last equally many.
      if (parts > 1 && tiles_of_part(shape, parts) * (parts - 1) >= tiles_of_part(shape, 1))
        continue;
      tile.parts = parts;
      const double seconds = product_time(machine, shape, tile).seconds;
      if (std::isfinite(seconds)) all.emplace_back(seconds, tile);
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
                     t.stages, t.parts == 1 ? "" : fmt::format(", {} parts", t.parts));
}

}  // namespace pw::cuda
