// A static model of how long attention on tensor cores takes: blocks given to multiprocessors in
// the order of their launch, each bound by its multiplications, its instructions or what shared
// memory gives, all together by what the caches and memory give. Its times are no measurements.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "backends/attention_order.hpp"
#include "cuda/kernels/matmul/tensor_machine.hpp"

namespace pw::cuda {

/// Rows of queries of an `mma`.
inline constexpr std::int64_t kRowsOfMma = 16;
/// Keys that an instruction multiplies by; a warp leaves them out where none of its rows sees them.
inline constexpr std::int64_t kKeysOfMma = 16;

/// How rows, a query's head each, and keys are shared out.
struct AttentionTile {
  int down = 1;  ///< warps that share no rows
  int tall = 1;  ///< tiles of 16 rows of a warp
  AttentionOrder order;
  int deep = 1;  ///< blocks of keys of each strand that are copied at a time
  /// By warpgroups (`wgmma`): four of `down` have 64 rows; tall, strands, parts and deep are 1.
  bool grouped = false;
  int together = 1;  ///< tokens of a block where `down` is 1; else as many as there are rows for
  [[nodiscard]] int threads() const { return 32 * down * order.strands; }
  [[nodiscard]] int rows() const { return down * tall * 16; }
  /// Of a warp's t-th tile of 16 rows: each second round of tiles goes the other way, so that warps
  /// have about as many keys where later rows see more.
  [[nodiscard]] int first_row(int warp, int t) const;
  /// Neighbouring tokens of a block; `share` heads have their keys in common.
  [[nodiscard]] std::int64_t tokens(std::int64_t share) const {
    return down == 1 ? together : rows() / share;
  }
  /// Keys of which its threads copy a word each at a time, so that pages can be looked up before
  /// what is on them is copied; 0 where blocks of keys, pages and threads do not fit together.
  [[nodiscard]] std::int64_t keys_at_a_time(std::int64_t width, std::int64_t page_tokens) const;
  [[nodiscard]] std::int64_t shared_bytes(std::int64_t width) const;
  /// Of a thread, about.
  [[nodiscard]] int registers(std::int64_t width) const;
  /// Whether there is a kernel for it: groups multiply heads of 64 or 128 columns, on machines that
  /// have instructions of groups.
  [[nodiscard]] bool fits(const TensorMachine& machine, std::int64_t width) const;
  friend bool operator==(const AttentionTile&, const AttentionTile&) = default;
};
/// "192 rows, 1 x 64 keys, 1 parts", and how many tokens or warpgroups where it is several.
[[nodiscard]] std::string described(const AttentionTile& tile);

struct TokenRange {
  std::int64_t first = 0, last = 0;
};
/// Of `tokens`, those of the n-th thread block of one group and part, in the order in which they
/// begin: the last ones first.
[[nodiscard]] TokenRange tokens_of_block(const AttentionTile& tile, std::int64_t share,
                                         std::int64_t tokens, std::int64_t n);

/// A step of some sequences that are alike.
struct AttentionWork {
  std::int64_t sequences = 1, rows = 1, past = 0;  ///< rows: new tokens of each
  std::int64_t heads = 0, groups = 0, width = 0;
};

struct AttentionTime {
  double seconds = 0;  ///< infinite where a block does not fit
  std::string_view
      bound;          ///< what takes longest: "memory", "cache", "shared memory", "mma", "issue"
  double adding = 0;  ///< of the seconds: parts of the keys, by the last block that has one
};

/// Trips to the second-level cache and back of what adds parts: its own sums are written, the
/// number that says whether it is the last, the largest scores, the sums.
inline constexpr double kAddingTrips = 4;

/// Seconds, fitted as the rest: for lengths, a table, pages, then queries and keys, and what ends a
/// block.
inline constexpr double kFirstWait = 4.2e-6;

// Fitted to what 223 steps of all tiles take on an H100, within 10 %
// (bench/results/tensor_cores.md; decision 027). Of a warp, for each score of a lane, as many
// instructions (mask, maximum, power, sum, half of a conversion, copies, addresses, and what they
// wait for); of the instructions that a multiprocessor can issue, those that it does.
inline constexpr double kOfScore = 19, kIssued = 0.6;
/// As many are in the machine code: the more is what they wait for.
inline constexpr double kCountedOfScore = 14, kWaiting = kOfScore / kCountedOfScore;
/// Of those, what any kernel has: maximum, power (two), sum, half of a conversion.
inline constexpr double kCountedOfWeight = 4.5;

/// Queries and results.
[[nodiscard]] double bytes_of_rows(const AttentionWork& work);
/// Those, and keys and values, each once.
[[nodiscard]] double attention_bytes(const AttentionWork& work);
/// Seconds: the larger of what bandwidth takes for queries, keys, values and results, each once,
/// and of what multiplications take for the keys that rows see, by whatever instruction.
[[nodiscard]] double attention_bound(const TensorMachine& machine, const AttentionWork& work);
/// Seconds that no tile and no way to share out the keys gets below, by the same model: see
/// attention_floor.cpp.
struct AttentionFloor {
  double seconds = 0;
  std::string_view bound;  ///< what takes longest
  bool parts = false;      ///< of the keys, which something adds
};
[[nodiscard]] AttentionFloor attention_floor(const TensorMachine& machine,
                                             const AttentionWork& work);
/// "latency and cache, adding parts".
[[nodiscard]] std::string described(const AttentionFloor& floor);
[[nodiscard]] AttentionTime attention_time(const TensorMachine& machine, const AttentionWork& work,
                                           const AttentionTile& tile);

}  // namespace pw::cuda
