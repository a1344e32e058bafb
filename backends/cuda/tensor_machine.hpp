// What is known of a machine's tensor cores: the constants of the models of products
// (tensor_model.hpp) and of attention (attention_model.hpp), each with its source.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace pw::cuda {

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

  /// Of shared memory of one multiprocessor, bytes a second, read and written: 128 a cycle (CUDA
  /// programming guide: 32 banks of 4 bytes).
  [[nodiscard]] double shared_bandwidth() const { return 128 * clock; }
  /// That one multiprocessor takes from the second-level cache at most: 64 bytes a cycle (Luo et
  /// al. 2024, as below).
  [[nodiscard]] double cache_port() const { return 64 * clock; }
  /// Warps' instructions that one multiprocessor issues a second: one a cycle of each of 4 parts.
  [[nodiscard]] double issue() const { return 4 * clock; }
  /// Blocks that one multiprocessor holds, by `resident_blocks` of the same architecture.
  [[nodiscard]] std::int64_t resident(int block_threads, int registers,
                                      std::int64_t block_shared_bytes) const;
};

/// Seconds until a read from memory is there, as `Machine::latency`.
inline constexpr double kReadLatency = 700e-9;
/// The same of the second-level cache: 260 to 280 cycles (Luo et al. 2024, A100 and H100).
inline constexpr double kCacheLatency = 200e-9;
/// Warps that a multiprocessor needs to multiply at full rate: one for each of its four parts.
inline constexpr int kFullWarps = 4;

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

/// Null for an architecture that is not known.
[[nodiscard]] const TensorMachine* tensor_machine(std::string_view arch);
/// For one that is not known the nearest older one, that allows a block no more than all do.
[[nodiscard]] TensorMachine tensor_machine_or_nearest(std::string_view arch);

/// 86 of "sm_86"; 0 where it is none.
[[nodiscard]] int arch_number(std::string_view arch);

}  // namespace pw::cuda
