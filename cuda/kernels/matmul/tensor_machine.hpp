// Properties of a machine's tensor cores: the constants of the cost models of products
// (tensor_model.hpp) and attention (attention_model.hpp), each with its source.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace pw::cuda {

// Fractions of a machine's rates that kernels reach, fitted to 143 measured products of all tiles
// on an H100, within 7 % (bench/results/tensor_cores.md; decision 027). Other machines are assumed
// to behave alike.

/// Reached fractions: memory bandwidth, a multiprocessor's rate from the second-level cache, and
/// the `mma.sync` rate.
inline constexpr double kReachedMemory = 0.976, kReachedPort = 0.852, kReachedRate = 0.79;
/// Reached fraction of the `wgmma` rate, assumed: cuBLASLt's products of 4096 and 8192 rows reach
/// 0.80 to 0.83 in total on the same device. No kernel of ours has been measured.
inline constexpr double kReachedGroupRate = 0.85;
/// Fraction of that rate with one warp for each quarter of a multiprocessor.
inline constexpr double kOneWarp = 0.859;
/// Seconds of a read's latency under load.
inline constexpr double kLoadedLatency = 1e-6;
/// Exponent for concurrent activities, whose total exceeds the longest: see `combined`.
inline constexpr double kTogether = 3.46;

/// Seconds of a memory read's latency, as in `Machine::latency`.
inline constexpr double kReadLatency = 700e-9;
/// Seconds of the second-level cache's latency: 260 to 280 cycles (Luo et al. 2024, A100 and H100).
inline constexpr double kCacheLatency = 200e-9;
/// Warps that a multiprocessor needs to multiply at full rate: one for each of its four quarters.
inline constexpr int kFullWarps = 4;
/// Rows of a warpgroup's product.
inline constexpr std::int64_t kGroupRows = 64;

struct TensorMachine {
  std::string_view arch, name;
  int multiprocessors = 0;
  std::int64_t block_bytes = 0;  ///< maximum shared memory of a block
  double clock = 0;              ///< cycles a second
  double bandwidth = 0;          ///< memory bandwidth, bytes a second
  double cache_bandwidth = 0;    ///< of the second-level cache, bytes a second
  double cache_bytes = 0;
  double flops = 0;       ///< 16-bit operations a second with f32 sums, by `mma.sync`
  double byte_flops = 0;  ///< fp8 operations a second; 0: unsupported
  /// For fp8, whose `mma` may be lowered to f16 conversions: the maximum sums of a thread before
  /// the compiler uses local memory, and the extra registers compared with other types.
  int byte_sums = 0, byte_registers = 0;
  double group_flops = 0;  ///< like `flops`, by `wgmma`; 0: unsupported

  /// Returns a multiprocessor's shared-memory bandwidth in bytes a second: 128 a cycle (CUDA
  /// programming guide: 32 banks of 4 bytes).
  [[nodiscard]] double shared_bandwidth() const { return 128 * clock; }
  /// Returns a multiprocessor's maximum rate from the second-level cache: the reached fraction of
  /// 64 bytes a cycle (Luo et al. 2024, as below).
  [[nodiscard]] double cache_port() const { return kReachedPort * 64 * clock; }
  /// Returns the reached memory bandwidth.
  [[nodiscard]] double read_bandwidth() const { return kReachedMemory * bandwidth; }
  /// Returns the highest rate for 16-bit operands by any instruction.
  [[nodiscard]] double most_flops() const { return std::max(flops, group_flops); }
  /// Returns one multiprocessor's share of a machine-wide rate with so many warps.
  [[nodiscard]] double multiplied(double rate, double warps) const {
    return kReachedRate * kept_busy(warps) * rate / multiprocessors;
  }
  /// Returns one multiprocessor's rate for 16-bit operands by warpgroups with so many warps.
  [[nodiscard]] double multiplied_by_groups(double warps) const {
    return kReachedGroupRate * kept_busy(warps) * group_flops / multiprocessors;
  }
  /// Returns the reached fraction of a multiprocessor's rate with so many warps. Four warps are one
  /// for each quarter, which stalls occasionally.
  [[nodiscard]] static double kept_busy(double warps) {
    return warps >= 2 * kFullWarps ? 1.0
           : warps > kFullWarps    ? kOneWarp + (1 - kOneWarp) * (warps - kFullWarps) / kFullWarps
                                   : kOneWarp * warps / kFullWarps;
  }
  /// Returns the warp instructions that a multiprocessor issues a second: one a cycle in each of 4
  /// quarters.
  [[nodiscard]] double issue() const { return 4 * clock; }
  /// Returns the resident blocks of a multiprocessor, by `resident_blocks` of the same
  /// architecture.
  [[nodiscard]] std::int64_t resident(int block_threads, int registers,
                                      std::int64_t block_shared_bytes) const;
};

/// A lower bound of a time, and the resource that sets it.
struct TimeTerm {
  double seconds;
  std::string_view name;
};
/// Returns the first entry with the most `seconds`.
template <class Time, std::size_t N>
[[nodiscard]] Time longest(const std::array<Time, N>& times) {
  return *std::max_element(times.begin(), times.end(),
                           [](const Time& a, const Time& b) { return a.seconds < b.seconds; });
}

/// Returns the seconds of concurrent activities: a norm of their times, such that two equal times
/// cost a fifth more than one.
template <class Time, std::size_t N>
[[nodiscard]] double combined(const std::array<Time, N>& times, double norm = kTogether) {
  const double most = longest(times).seconds;
  if (!(most > 0)) return 0;
  double sum = 0;
  for (const Time& t : times) sum += std::pow(t.seconds / most, norm);
  return most * std::pow(sum, 1 / norm);
}

/// Returns the machine, or null for an unknown architecture.
[[nodiscard]] const TensorMachine* tensor_machine(std::string_view arch);
/// Returns the machine; for an unknown architecture the nearest older one, with the block limits
/// that all share.
[[nodiscard]] TensorMachine tensor_machine_or_nearest(std::string_view arch);

/// Returns 86 for "sm_86"; 0 if malformed.
[[nodiscard]] int arch_number(std::string_view arch);

}  // namespace pw::cuda
