// Exports tensor_machine, product_bound, product_time, product_tiles and choose_tile.
#include "backends/cuda/tensor_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace pw::cuda {
namespace {

constexpr std::int64_t kKibibyte = 1024;

// Multiprocessors, bandwidth and dense peaks by NVIDIA's data sheets (A100 SXM 80 GB: 312 TFLOPS;
// H100 SXM: 989; B200: 2250; RTX 5090: 209.5, fp8 twice as many with f32 sums at half rate). These
// peaks are reached by `wgmma` and `tcgen05` on sm_90 and sm_100; `mma.sync` reaches 62.9 % of it
// on H100 (Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via
// Microbenchmarking", 2024). For B200 nothing is published: the rate of a multiprocessor of H100 at
// B200's clock is assumed.
constexpr double kHopper = 0.629;
constexpr std::array<TensorMachine, 4> kTensorMachines{{
    {"sm_80", "A100 SXM 80 GB", 108, 2048, 164 * kKibibyte, 2.039e12, 312e12, 0},
    {"sm_90", "H100 SXM", 132, 2048, 228 * kKibibyte, 3.35e12, 989.4e12 * kHopper,
     989.4e12 * kHopper},
    {"sm_100", "B200", 148, 2048, 228 * kKibibyte, 8e12,
     989.4e12 * kHopper * 148 / 132 * 1.85 / 1.755, 989.4e12 * kHopper * 148 / 132 * 1.85 / 1.755},
    {"sm_120", "RTX 5090", 170, 1536, 100 * kKibibyte, 1.792e12, 209.5e12, 419e12},
}};

constexpr std::int64_t kTensorBlockBytes = kKibibyte;  // of shared memory, the system's own
constexpr std::int64_t kMostOfBlock = 99 * kKibibyte;  // that every one of them allows to one block
constexpr double kLatency = 700e-9;                    // of a read from memory
constexpr int kFull = 4;  // warps that a multiprocessor needs to multiply at full rate: one a part

double blocks_of(const ProductShape& shape, const ProductTile& tile) {
  return std::ceil(static_cast<double>(shape.rows) / tile.rows) *
         std::ceil(static_cast<double>(shape.columns) / tile.columns);
}

double flops_of(const TensorMachine& machine, const ProductShape& shape) {
  return shape.in_bytes == 1 ? machine.byte_flops : machine.flops;
}

}  // namespace

const TensorMachine* tensor_machine(std::string_view arch) {
  const auto found = std::find_if(kTensorMachines.begin(), kTensorMachines.end(),
                                  [&](const TensorMachine& m) { return m.arch == arch; });
  return found == kTensorMachines.end() ? nullptr : &*found;
}

double product_bound(const TensorMachine& machine, const ProductShape& s) {
  const auto n = static_cast<double>(s.rows), k = static_cast<double>(s.depth),
             m = static_cast<double>(s.columns);
  const double bytes =
      (n * k + k * m) * static_cast<double>(s.in_bytes) + n * m * static_cast<double>(s.out_bytes);
  return std::max(bytes / machine.bandwidth, 2 * n * k * m / flops_of(machine, s));
}

/// A block reads its rows of a and its columns of b. Of what blocks of a wave read, each byte comes
/// from memory once, and from the second-level cache else, which gives three times as much. A block
/// has stages - 1 tiles under way, and begins with waiting for the first.
double product_time(const TensorMachine& machine, const ProductShape& shape,
                    const ProductTile& tile) {
  constexpr double kCache = 3;  // times the bandwidth of memory
  const std::int64_t resident =
      std::min<std::int64_t>(machine.shared_bytes / (tile.shared_bytes() + kTensorBlockBytes),
                             machine.threads / tile.threads());
  if (resident == 0) return std::numeric_limits<double>::infinity();
  const auto depth = static_cast<double>(shape.depth);
  const double blocks = blocks_of(shape, tile);
  const double tiles = std::ceil(depth * static_cast<double>(shape.in_bytes) / 128);
  const double read = tiles * 128 * (tile.rows + tile.columns);  // bytes of a block
  const double stored = static_cast<double>(shape.rows * shape.columns * shape.out_bytes) / blocks;
  const double flops =
      2.0 * tile.rows * tile.columns * tiles * 128 / static_cast<double>(shape.in_bytes);
  const double distinct =
      static_cast<double>((shape.rows + shape.columns) * shape.in_bytes) * depth / blocks;
  const auto seconds = [&](double on_one, double busy) {
    const double share = machine.bandwidth / busy;  // of memory, of one multiprocessor
    const double under_way = on_one * (tile.stages - 1) * 128.0 * (tile.rows + tile.columns);
    const double reach = std::min(share, under_way / kLatency);
    const double rate = flops_of(machine, shape) / machine.multiprocessors *
                        std::min(1.0, on_one * tile.threads() / 32 / static_cast<double>(kFull));
    const double memory = on_one * (distinct / reach + stored / share);
    const double cache = on_one * read / std::min(kCache * share, under_way / kLatency * 2);
    return std::max({memory, cache, on_one * flops / rate}) + kLatency;
  };
  const double all = machine.multiprocessors, on_one = blocks / all;
  const double waves = std::floor(on_one / static_cast<double>(resident));
  const double rest = on_one - waves * static_cast<double>(resident);
  return waves * seconds(static_cast<double>(resident), all) +
         (rest > 0 ? seconds(std::ceil(rest), std::min(all, std::max(1.0, rest * all))) : 0);
}

const std::vector<ProductTile>& product_tiles() {
  static const std::vector<ProductTile> tiles{
      {128, 128, 2, 4, 3}, {128, 64, 2, 2, 4}, {64, 128, 2, 2, 4}, {64, 64, 2, 2, 4},
      {32, 64, 1, 4, 6},   {16, 64, 1, 4, 6},  {16, 32, 1, 2, 8},
  };
  return tiles;
}

ProductTile choose_tile(const TensorMachine& machine, const ProductShape& shape) {
  const auto& all = product_tiles();
  const auto time = [&](const ProductTile& tile) { return product_time(machine, shape, tile); };
  ProductTile best = all.front();
  for (const ProductTile& tile : all)
    if (tile.shared_bytes() <= kMostOfBlock && time(tile) < time(best)) best = tile;
  return best;
}

}  // namespace pw::cuda
