// A cost model of attention on tensor cores. It assigns blocks to multiprocessors in launch order.
// The time of a block is bounded by its multiplications, its instructions or shared-memory
// bandwidth, and the whole launch by caches and memory. The times are estimates, not measurements.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "backends/attention_order.hpp"
#include "cuda/kernels/matmul/tensor_machine.hpp"

namespace pw::cuda {

/// Query rows of an `mma`.
inline constexpr std::int64_t kRowsOfMma = 16;
/// Keys of an `mma`; a warp skips them if none of its rows sees them.
inline constexpr std::int64_t kKeysOfMma = 16;

/// Division of query rows (one head of a token each) and keys.
struct AttentionTile {
  int down = 1;  ///< warps with different rows
  int tall = 1;  ///< tiles of 16 rows in a warp
  AttentionOrder order;
  int deep = 1;  ///< key blocks of each strand that are copied at a time
  /// Uses warpgroups (`wgmma`): each four of `down` hold 64 rows, and four more warps copy; tall,
  /// strands, parts and deep are 1.
  bool grouped = false;
  int together = 1;  ///< tokens of a block if `down` is 1; else as many as its rows hold
  [[nodiscard]] int threads() const { return 32 * (down * order.strands + (grouped ? 4 : 0)); }
  [[nodiscard]] int rows() const { return down * tall * 16; }
  /// Returns the first row of a warp's t-th tile of 16 rows. Every second round of tiles has
  /// reverse order, which balances the warps, because later rows see more keys.
  [[nodiscard]] int first_row(int warp, int t) const;
  /// Returns the neighbouring tokens of a block; `share` heads share their keys.
  [[nodiscard]] std::int64_t tokens(std::int64_t share) const {
    return down == 1 ? together : rows() / share;
  }
  /// Returns the keys that the threads copy at a time, a word each, so that pages are looked up
  /// before their contents are copied; 0 if key blocks, pages and threads do not fit together.
  [[nodiscard]] std::int64_t keys_at_a_time(std::int64_t width, std::int64_t page_tokens) const;
  [[nodiscard]] std::int64_t shared_bytes(std::int64_t width) const;
  /// Returns the approximate registers of a thread; with several warpgroups, the mean over all.
  [[nodiscard]] int registers(std::int64_t width) const;
  /// Returns true if there is a kernel for the tile: warpgroups support heads of 64 or 128 columns,
  /// on machines with warpgroup instructions.
  [[nodiscard]] bool fits(const TensorMachine& machine, std::int64_t width) const;
  friend bool operator==(const AttentionTile&, const AttentionTile&) = default;
};
/// Returns "192 rows, 1 x 64 keys, 1 parts", with the number of tokens or warpgroups if several.
[[nodiscard]] std::string described(const AttentionTile& tile);

struct TokenRange {
  std::int64_t first = 0, last = 0;
};
/// Returns the tokens of the n-th thread block of one group and part, in launch order: the last
/// tokens come first.
[[nodiscard]] TokenRange tokens_of_block(const AttentionTile& tile, std::int64_t share,
                                         std::int64_t tokens, std::int64_t n);

/// A step of several equal sequences.
struct AttentionWork {
  std::int64_t sequences = 1, rows = 1, past = 0;  ///< rows: new tokens of each
  std::int64_t heads = 0, groups = 0, width = 0;
};

struct AttentionTime {
  double seconds = 0;  ///< infinite if a block does not fit
  std::string_view
      bound;          ///< limiting resource: "memory", "cache", "shared memory", "mma", "issue"
  double adding = 0;  ///< of the seconds: adding parts of the keys, by the last block of each token
};

/// Round trips to the second-level cache for adding parts: writing a block's sums, the arrival
/// counter, the largest scores, the sums.
inline constexpr double kAddingTrips = 4;

/// Fitted seconds of a block's start and end: it waits for lengths, a table, pages, then queries
/// and keys.
inline constexpr double kFirstWait = 4.2e-6;

// Fitted to 223 measured steps of all tiles on an H100, within 10 % (bench/results/tensor_cores.md;
// decision 027). kOfScore: instructions of a warp for each score of a lane (mask, maximum, power,
// sum, half of a conversion, copies, addresses, and their stalls). kIssued: fraction of the issue
// rate that is reached.
inline constexpr double kOfScore = 19, kIssued = 0.6;
/// Instructions counted in the machine code; the rest of kOfScore is stalls.
inline constexpr double kCountedOfScore = 14, kWaiting = kOfScore / kCountedOfScore;
/// Instructions of these that any kernel needs: maximum, power (two), sum, half of a conversion.
inline constexpr double kCountedOfWeight = 4.5;

/// Returns the bytes of queries and results.
[[nodiscard]] double bytes_of_rows(const AttentionWork& work);
/// Returns the bytes of queries, results, keys and values, each once.
[[nodiscard]] double attention_bytes(const AttentionWork& work);
/// Returns a lower bound in seconds: the larger of the time for queries, keys, values and results
/// at full bandwidth, each once, and of the multiplications for visible keys at the fastest
/// instruction rate.
[[nodiscard]] double attention_bound(const TensorMachine& machine, const AttentionWork& work);
/// Seconds that no tile and no division of the keys beats in the same model: see
/// attention_floor.cpp.
struct AttentionFloor {
  double seconds = 0;
  std::string_view bound;  ///< limiting resource
  bool parts = false;      ///< the keys are split into parts
};
[[nodiscard]] AttentionFloor attention_floor(const TensorMachine& machine,
                                             const AttentionWork& work);
/// Returns text such as "latency and cache, adding parts".
[[nodiscard]] std::string described(const AttentionFloor& floor);
[[nodiscard]] AttentionTime attention_time(const TensorMachine& machine, const AttentionWork& work,
                                           const AttentionTile& tile);

}  // namespace pw::cuda
