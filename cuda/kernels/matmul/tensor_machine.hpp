// What is known of a machine's tensor cores: the constants of the models of products
// (tensor_model.hpp) and of attention (attention_model.hpp), each with its source.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace pw::cuda {

// What kernels get of a machine's rates, and when: fitted to what 143 products of all tiles take on
// an H100, within 7 % (bench/results/tensor_cores.md; decision 027). The same is assumed of the
// other machines.

/// Of memory's bandwidth, of what a multiprocessor may take from the second-level cache, and of
/// what `mma.sync` multiplies.
inline constexpr double kReachedMemory = 0.976, kReachedPort = 0.852, kReachedRate = 0.79;
/// Of what `wgmma` multiplies: cuBLASLt's products of 4096 and 8192 rows reach 0.80 to 0.83, all
/// told, on the same device. No kernel of ours has been measured.
inline constexpr double kReachedGroupRate = 0.85;
/// Of that, with one warp for each part of a multiprocessor.
inline constexpr double kOneWarp = 0.859;
/// Seconds until a read is there while many are under way.
inline constexpr double kLoadedLatency = 1e-6;
/// Of things that go on at the same time the longest is not all: see `combined`.
inline constexpr double kTogether = 3.46;

/// Seconds until a read from memory is there, as `Machine::latency`.
inline constexpr double kReadLatency = 700e-9;
/// The same of the second-level cache: 260 to 280 cycles (Luo et al. 2024, A100 and H100).
inline constexpr double kCacheLatency = 200e-9;
/// Warps that a multiprocessor needs to multiply at full rate: one for each of its four parts.
inline constexpr int kFullWarps = 4;
/// Rows that a warpgroup multiplies.
inline constexpr std::int64_t kGroupRows = 64;

struct TensorMachine {
  std::string_view arch, name;
  int multiprocessors = 0;
  std::int64_t block_bytes = 0;  ///< of shared memory, that a block may have
  double clock = 0;              ///< cycles a second
  double bandwidth = 0;          ///< of memory, bytes a second
  double cache_bandwidth = 0;    ///< of the second-level cache, bytes a second
  double cache_bytes = 0;
  double flops = 0;       ///< a second of 16-bit operands with f32 sums, by `mma.sync`
  double byte_flops = 0;  ///< of fp8 operands; 0: none
  /// Of fp8, whose `mma` may be made of conversions to f16: sums of a thread, at most, beyond which
  /// the compiler keeps some in local memory, and registers needed beside those of other types.
  int byte_sums = 0, byte_registers = 0;
  double group_flops = 0;  ///< as `flops`, by `wgmma`; 0: none

  /// Of shared memory of one multiprocessor, bytes a second, read and written: 128 a cycle (CUDA
  /// programming guide: 32 banks of 4 bytes).
  [[nodiscard]] double shared_bandwidth() const { return 128 * clock; }
  /// That one multiprocessor takes from the second-level cache at most: of 64 bytes a cycle (Luo et
  /// al. 2024, as below) what is reached.
  [[nodiscard]] double cache_port() const { return kReachedPort * 64 * clock; }
  /// Of memory, what is reached.
  [[nodiscard]] double read_bandwidth() const { return kReachedMemory * bandwidth; }
  /// Of 16-bit operands by whatever instruction.
  [[nodiscard]] double most_flops() const { return std::max(flops, group_flops); }
  /// What one multiprocessor multiplies a second with so many warps, of a rate of the whole
  /// machine.
  [[nodiscard]] double multiplied(double rate, double warps) const {
    return kReachedRate * kept_busy(warps) * rate / multiprocessors;
  }
  /// The same of 16-bit operands by warpgroups that have so many warps.
  [[nodiscard]] double multiplied_by_groups(double warps) const {
    return kReachedGroupRate * kept_busy(warps) * group_flops / multiprocessors;
  }
  /// Of its rate, what a multiprocessor gets with so many warps: four are one for each of its
  /// parts, which wait by themselves now and then.
  [[nodiscard]] static double kept_busy(double warps) {
    return warps >= 2 * kFullWarps ? 1.0
           : warps > kFullWarps    ? kOneWarp + (1 - kOneWarp) * (warps - kFullWarps) / kFullWarps
                                   : kOneWarp * warps / kFullWarps;
  }
  /// Warps' instructions that one multiprocessor issues a second: one a cycle of each of 4 parts.
  [[nodiscard]] double issue() const { return 4 * clock; }
  /// Blocks that one multiprocessor holds, by `resident_blocks` of the same architecture.
  [[nodiscard]] std::int64_t resident(int block_threads, int registers,
                                      std::int64_t block_shared_bytes) const;
};

/// What something takes at least, and by what.
struct TimeTerm {
  double seconds;
  std::string_view name;
};
/// Of what has `seconds`: the first of those with most.
template <class Time, std::size_t N>
[[nodiscard]] Time longest(const std::array<Time, N>& times) {
  return *std::max_element(times.begin(), times.end(),
                           [](const Time& a, const Time& b) { return a.seconds < b.seconds; });
}

/// Seconds of what goes on at the same time: a norm of the times, so that what takes as long as
/// another costs a fifth more than one of them.
template <class Time, std::size_t N>
[[nodiscard]] double combined(const std::array<Time, N>& times, double norm = kTogether) {
  const double most = longest(times).seconds;
  if (!(most > 0)) return 0;
  double sum = 0;
  for (const Time& t : times) sum += std::pow(t.seconds / most, norm);
  return most * std::pow(sum, 1 / norm);
}

/// Null for an architecture that is not known.
[[nodiscard]] const TensorMachine* tensor_machine(std::string_view arch);
/// For one that is not known the nearest older one, that allows a block no more than all do.
[[nodiscard]] TensorMachine tensor_machine_or_nearest(std::string_view arch);

/// 86 of "sm_86"; 0 where it is none.
[[nodiscard]] int arch_number(std::string_view arch);

}  // namespace pw::cuda
