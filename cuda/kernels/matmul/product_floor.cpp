// Lower bound of a product's time: the model of tensor_model.cpp, relaxed. It uses the best number
// of multiprocessors, equal work in fractions of steps, warps of any extents, and always enough
// bytes in flight. Each relaxation can only lower the time, so no real tile beats the result. Cost:
// a search over tile extents and numbers of multiprocessors.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "base/division.hpp"
#include "cuda/kernels/matmul/tensor_model.hpp"

namespace pw::cuda {
namespace {

constexpr std::int64_t
    kTall = 16,
    kWide = 16;  // extents of an `mma`; two of them, since one ldmatrix loads b for both
// Fraction of a multiprocessor's registers without sums: about 52 of a thread's 255, see
// ProductTile::registers.
constexpr std::int64_t kSums = 65536 * (255 - 52) / 255;

struct Tile {
  double rows, columns, count;
};

class FloorFinder {
 public:
  FloorFinder(const TensorMachine& machine, const ProductShape& shape)
      : machine_(machine),
        flops_(shape.in_bytes == 1 ? machine.byte_flops : machine.flops),
        depth_bytes_(static_cast<double>(shape.depth * shape.in_bytes)),
        depth_(static_cast<double>(shape.depth)),
        stored_(static_cast<double>(shape.rows * shape.columns * shape.out_bytes) /
                machine.read_bandwidth()),
        shape_(shape) {}

  ProductFloor run() {
    for (std::int64_t rows = kTall; rows < shape_.rows + kTall; rows += kTall)
      for (std::int64_t columns = kWide;
           columns < shape_.columns + kWide && rows * columns <= kSums; columns += kWide)
        add(rows, columns);
    best_.seconds = std::max(best_.seconds, product_bound(machine_, shape_));
    return best_;
  }

 private:
  void add(std::int64_t rows, std::int64_t columns) {
    const std::int64_t tiles = ceil_div(shape_.rows, rows) * ceil_div(shape_.columns, columns);
    const std::int64_t all = machine_.multiprocessors;
    const auto count = static_cast<double>(tiles);
    const Tile tile{static_cast<double>(rows), static_cast<double>(columns), count};
    // Whole tiles: the time of the multiprocessor with the most tiles; only the last tiles' results
    // are stored without overlap.
    take(tile, static_cast<double>(ceil_div(tiles, all)), std::min(tiles, all),
         stored_ * std::min(1.0, static_cast<double>(all) / count), false);
    // Divided tiles. With more blocks than tiles no block has a whole one, and all results are
    // added; otherwise the number of pieces is unknown and costs nothing here.
    for (std::int64_t busy = 1; busy <= all; ++busy) {
      const auto blocks = static_cast<double>(busy);
      const double read = busy > tiles ? 1 - count / blocks : 0;
      const double moved = busy > tiles ? 4 * tile.rows * tile.columns * (1 + read) : 0;
      take(tile, count / blocks, busy, kMeeting + moved / (kAddingPort * machine_.cache_port()),
           true);
    }
  }

  /// Considers the time for this number of tiles on one multiprocessor, this number of busy
  /// multiprocessors, and the seconds after that.
  void take(const Tile& tile, double on_one, std::int64_t busy, double after, bool cut) {
    const auto blocks = static_cast<double>(busy);
    const double rows = std::min(tile.rows, static_cast<double>(shape_.rows));  // existing rows
    const double read = tile.count * (rows + tile.columns) * depth_bytes_;
    const double multiplied = 2 * tile.rows * tile.columns * depth_ * on_one;
    const double memory = static_cast<double>(shape_.rows + shape_.columns) * depth_bytes_ /
                          machine_.read_bandwidth();
    const double cache = read / std::min(machine_.cache_bandwidth, blocks * machine_.cache_port());
    const bool groups_fit = shape_.in_bytes != 1 && machine_.group_flops != 0;
    // No time is less than its longest term, so most tiles are refused without a norm.
    const double fastest = std::max(machine_.multiplied(flops_, 2 * kFullWarps),
                                    groups_fit ? machine_.multiplied_by_groups(2 * kFullWarps) : 0);
    if (!less_than_best(std::max({memory, cache, multiplied / fastest}), after)) return;
    // At `rate`, with the rows and columns of a step that are written to shared memory and loaded.
    const auto add_time = [&](double rate, double loaded) {
      const std::array<TimeTerm, 4> terms{{
          {memory, "memory"},
          {cache, "cache"},
          {loaded * depth_bytes_ * on_one / machine_.shared_bandwidth(), "shared memory"},
          {multiplied / rate, "mma"},
      }};
      const TimeTerm most = longest(terms);
      if (!less_than_best(most.seconds, after)) return;
      const double seconds = kReadLatency + combined(terms) + after;
      if (seconds < best_.seconds) best_ = {seconds, most.name, cut};
    };
    const double copied = tile.rows + tile.columns;
    // Two blocks on one multiprocessor have twice the warps, so that it is always at its full rate,
    // and more warps only load more.
    const bool full = on_one > 1;
    for (int warps = 1; warps <= (full ? 1 : 2 * kFullWarps); ++warps)
      add_time(machine_.multiplied(flops_, full ? 2 * kFullWarps : warps),
               copied + 2 * std::sqrt(warps * tile.rows * tile.columns));
    if (!groups_fit) return;
    constexpr auto of_group = static_cast<double>(kGroupRows);
    const double groups = std::ceil(tile.rows / of_group);
    const double part = tile.rows / (groups * of_group);  // largest multiplied fraction
    add_time(part * machine_.multiplied_by_groups(full ? 2 * kFullWarps : kFullWarps * groups),
             copied + tile.rows + groups * tile.columns);
  }

  [[nodiscard]] bool less_than_best(double longest_term, double after) const {
    return kReadLatency + longest_term + after < best_.seconds;
  }

  const TensorMachine& machine_;
  double flops_, depth_bytes_, depth_, stored_;
  const ProductShape& shape_;
  ProductFloor best_{std::numeric_limits<double>::infinity(), "memory", false};
};

}  // namespace

ProductFloor product_floor(const TensorMachine& machine, const ProductShape& shape) {
  return FloorFinder(machine, shape).run();
}

std::string described(const ProductFloor& floor) {
  return std::string(floor.bound) + (floor.cut ? ", adding pieces" : "");
}

}  // namespace pw::cuda
