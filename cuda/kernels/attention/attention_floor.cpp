// Lower bound of attention's time: the model of attention_model.cpp, relaxed. Tiles have any number
// of rows, use the fastest instruction, and process for 16 rows only the keys that the last of them
// sees. Multiprocessors have equal work if keys are split into parts; otherwise the minimum number
// of whole tiles. Nothing waits except for the first keys and for the addition of parts. Of the
// instructions besides multiplications and reads only the weights of scores count. Each relaxation
// can only lower the time.
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/division.hpp"
#include "cuda/kernels/attention/attention_model.hpp"

namespace pw::cuda {
namespace {

constexpr std::int64_t kThreadRegisters = 255;      // of a thread
constexpr std::int64_t kRegisterFile = 256 * 1024;  // bytes of a multiprocessor
constexpr double kOfElement = 2;

class AttentionFloorFinder {
 public:
  AttentionFloorFinder(const TensorMachine& machine, const AttentionWork& work)
      : machine_(machine), work_(work), share_(work.heads / work.groups) {}

  AttentionFloor run() {
    const std::int64_t most = kRegisterFile / (4 * work_.width);
    for (std::int64_t rows = kRowsOfMma; rows <= most && rows < work_.rows * share_ + kRowsOfMma;
         rows += kRowsOfMma) {
      add(rows, false);
      add(rows, true);
    }
    return best_;
  }

 private:
  /// Returns the keys that tiles of `rows` rows of one sequence and group see, first tile first.
  [[nodiscard]] std::vector<double> seen(std::int64_t rows) const {
    std::vector<double> out;
    for (std::int64_t row = 0; row < work_.rows * share_; row += rows)
      out.push_back(
          static_cast<double>(work_.past + std::min(work_.rows, (row + rows - 1) / share_ + 1)));
    return out;
  }

  /// Returns the least work of the busiest multiprocessor, if each of these tiles occurs `alike`
  /// times and runs on one multiprocessor.
  [[nodiscard]] double on_one(std::vector<double> tiles) const {
    const auto alike = static_cast<std::size_t>(work_.sequences * work_.groups);
    const auto count = static_cast<std::size_t>(machine_.multiprocessors);
    std::sort(tiles.begin(), tiles.end(), std::greater<>());
    const auto nth = [&](std::size_t i) { return tiles[i / alike]; };
    double out = mean(tiles);
    // By the pigeonhole principle, of n * count + 1 tiles some n + 1 share a multiprocessor: at
    // least those of the least work.
    for (std::size_t n = 0; n * count < tiles.size() * alike; ++n) {
      double sum = 0;
      for (std::size_t i = 0; i <= n; ++i) sum += nth(n * count - i);
      out = std::max(out, sum);
    }
    return out;
  }
  [[nodiscard]] double mean(const std::vector<double>& tiles) const {
    return std::accumulate(tiles.begin(), tiles.end(), 0.0) *
           static_cast<double>(work_.sequences * work_.groups) / machine_.multiprocessors;
  }

  void add(std::int64_t rows, bool parts) {
    const auto width = static_cast<double>(work_.width);
    const double pair = 2 * width * kOfElement, all = machine_.multiprocessors;
    const std::vector<double> keys = seen(rows);
    std::vector<double> multiplied(keys.size()), queries;
    for (std::size_t i = 0; i < keys.size(); ++i)
      queries.push_back(static_cast<double>(
          std::min(rows, work_.rows * share_ - static_cast<std::int64_t>(i) * rows)));
    const std::vector<double> of_tiles = seen(kRowsOfMma);
    for (std::size_t i = 0; i < of_tiles.size(); ++i)
      multiplied[i / static_cast<std::size_t>(rows / kRowsOfMma)] += of_tiles[i] * kRowsOfMma;
    const auto most = [&](const std::vector<double>& tiles) {
      return parts ? mean(tiles) : on_one(tiles);
    };
    // A warp reads a key once for its tiles, whose sums are in its registers; a warpgroup once for
    // 64 rows. A query is written and read once, with half as many bytes as a key and its value.
    const bool groups = machine_.group_flops != 0;
    const std::int64_t tall =
        std::max(kThreadRegisters / (work_.width / 2), groups ? kGroupRows / kRowsOfMma : 0);
    const double rate = std::max(machine_.multiplied(machine_.flops, 2 * kFullWarps),
                                 machine_.multiplied_by_groups(2 * kFullWarps));
    const auto warps = static_cast<double>(ceil_div(rows / kRowsOfMma, tall));
    std::vector<double> moved(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) moved[i] = (1 + warps) * keys[i] + queries[i];
    const std::array<TimeTerm, 5> bounds{{
        {attention_bytes(work_) / machine_.read_bandwidth(), "memory"},
        {std::max((mean(keys) * all * pair + bytes_of_rows(work_)) / machine_.cache_bandwidth,
                  most(keys) * pair / machine_.cache_port()),
         "cache"},
        {most(moved) * pair / machine_.shared_bandwidth(), "shared memory"},
        {4 * width * most(multiplied) / rate, "mma"},
        {kWaiting * kCountedOfWeight * most(multiplied) / 32 / (kIssued * machine_.issue()),
         "issue"},
    }};
    const double seconds = std::max(attention_bound(machine_, work_), combined(bounds)) +
                           kFirstWait + (parts ? kAddingTrips * kCacheLatency : 0);
    if (seconds < best_.seconds) best_ = {seconds, longest(bounds).name, parts};
  }

  const TensorMachine& machine_;
  const AttentionWork& work_;
  std::int64_t share_;
  AttentionFloor best_{std::numeric_limits<double>::infinity(), "bytes or flops", false};
};

}  // namespace

AttentionFloor attention_floor(const TensorMachine& machine, const AttentionWork& work) {
  return AttentionFloorFinder(machine, work).run();
}

std::string described(const AttentionFloor& floor) {
  return std::string("latency and ") + std::string(floor.bound) +
         (floor.parts ? ", adding parts" : "");
}

}  // namespace pw::cuda
