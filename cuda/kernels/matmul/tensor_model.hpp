// A cost model of a product on tensor cores: waves of blocks. A block's time is bounded by its
// multiplications, by the bytes it moves, by shared-memory bandwidth, or by memory latency for its
// reads in flight. It chooses tiles if there is no device to measure on. The times are estimates,
// not measurements.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/kernels/matmul/tensor_machine.hpp"

namespace pw::cuda {

struct ProductTile {
  int rows = 64, columns = 64;  ///< rows and columns of a block
  int down = 2, across = 2;     ///< warps
  int stages = 4;               ///< pipeline stages in shared memory, each 128 bytes of k
  int shares = 0;  ///< blocks of a row of tiles, see ProductDivision; 0: one for each tile
  /// Uses warpgroups (`wgmma`): four warps multiply 64 rows, with 16-bit operands in shared memory.
  /// Groups are stacked along the rows: `across` is 1.
  bool grouped = false;
  [[nodiscard]] int threads() const { return 32 * down * across; }
  [[nodiscard]] std::int64_t shared_bytes() const {
    return std::int64_t{stages} * (rows + (grouped ? (columns + 63) / 64 * 64 : columns)) * 128;
  }
  /// Returns how often a step's columns are loaded from shared memory: once for each warp, or
  /// group, of rows.
  [[nodiscard]] int down_loads() const { return grouped ? down / 4 : down; }
  /// Returns true if there is a kernel for the tile: warpgroups multiply 16-bit elements, on
  /// machines with warpgroup instructions.
  [[nodiscard]] bool fits(const TensorMachine& machine, std::int64_t in_bytes) const {
    return !grouped || (machine.group_flops != 0 && in_bytes == 2);
  }
  /// Returns true if the threads lack registers for copying single elements.
  [[nodiscard]] bool words_only() const { return threads() > 256 && sums() > 96; }
  /// Returns the sums of a thread.
  [[nodiscard]] int sums() const { return rows * columns / threads(); }
  /// Returns the approximate registers of a thread: sums, fragments of a and b, and others.
  [[nodiscard]] int registers() const;
  friend bool operator==(const ProductTile&, const ProductTile&) = default;
};

/// Returns "128x256, 2 x 4 warps, 3 stages, 132 shares", or "128x256, 2 warpgroups, 4 stages".
[[nodiscard]] std::string described(const ProductTile& tile);

struct ProductShape {
  std::int64_t rows = 0, depth = 0, columns = 0;
  std::int64_t in_bytes = 2, out_bytes = 2;  ///< bytes of an element
};

/// How the steps of a row of tiles, each 128 bytes of k, are divided among blocks: in order, in
/// shares of equal length up to one step. This is Stream-K (Osama et al. 2023) applied to one row
/// of tiles at a time, so that the order of a result's sums does not depend on other rows. The part
/// of a tile in a share is a piece. If a tile has several pieces their sums are written; that of
/// share s and tile t has number s + t. The blocks whose last piece belongs to a tile add its
/// pieces in ascending order, each block for a part of the tile.
struct ProductDivision {
  static constexpr std::int64_t kMostPieces = 32;  ///< for a tile
  std::int64_t deep = 0, across = 0;               ///< steps of a tile; tiles of a row
  std::int64_t shares = 0;
  std::int64_t pieces = 0, most_pieces = 1;  ///< pieces of a row; maximum of one tile
  std::int64_t whole = 0;                    ///< tiles of a row with a single piece
  [[nodiscard]] std::int64_t steps() const { return deep * across; }  ///< steps of a row
  [[nodiscard]] std::int64_t most_steps() const { return (steps() + shares - 1) / shares; }
  [[nodiscard]] bool cut() const { return pieces > across; }
  [[nodiscard]] std::int64_t begin(std::int64_t share) const { return share * steps() / shares; }
  /// Returns the share that contains a step.
  [[nodiscard]] std::int64_t share_of(std::int64_t step) const {
    return ((step + 1) * shares - 1) / steps();
  }
  [[nodiscard]] std::int64_t pieces_of(std::int64_t tile) const {
    return share_of((tile + 1) * deep - 1) - share_of(tile * deep) + 1;
  }
  /// Returns the number of blocks that add a tile's several pieces: all its blocks, except a last
  /// one that continues with the next tile.
  [[nodiscard]] std::int64_t adders_of(std::int64_t tile) const {
    const std::int64_t last = share_of((tile + 1) * deep - 1);
    return pieces_of(tile) - (begin(last + 1) > (tile + 1) * deep ? 1 : 0);
  }
};
[[nodiscard]] ProductDivision divided(const ProductShape& shape, const ProductTile& tile);

/// Division of a tile among its adders: 16 × 16 squares of a warp's rows and columns, `together` of
/// them at a time; a thread reads the sums of `at_once` pieces at a time.
struct TileSquares {
  std::int64_t all = 0, together = 0, at_once = 0;
  [[nodiscard]] std::int64_t groups() const { return (all + together - 1) / together; }
};
[[nodiscard]] TileSquares squares_of(const ProductTile& tile, std::int64_t most_pieces);

/// Fitted constants. kMeeting: seconds from a block's last piece until its sums are visible,
/// counted, seen as complete, and the first sums of others are read. kAddingPort: fraction of a
/// multiprocessor's cache rate that sums reach.
inline constexpr double kMeeting = 3e-6, kAddingPort = 0.32 / kReachedPort;

struct ProductTime {
  double seconds = 0;      ///< infinite if a block does not fit
  std::string_view bound;  ///< limiting resource: "memory", "cache", "shared memory" or "mma"
  double adding = 0;       ///< of the seconds: after the end of the last piece
};

/// Returns the resident blocks of a multiprocessor for a product with elements of `in_bytes`, which
/// limits the registers of its kernel; 0 if a block does not fit or the machine lacks the
/// instructions.
[[nodiscard]] std::int64_t resident(const TensorMachine& machine, const ProductTile& tile,
                                    std::int64_t in_bytes);
/// Returns a lower bound in seconds: the larger of the times of bandwidth and multiplications
/// alone.
[[nodiscard]] double product_bound(const TensorMachine& machine, const ProductShape& shape);
[[nodiscard]] ProductTime product_time(const TensorMachine& machine, const ProductShape& shape,
                                       const ProductTile& tile);
/// The model's time of the best tile of whole instructions with sums in registers, with the best
/// division and number of multiprocessors: a lower bound for kernels of this kind. Compared with
/// the bound it adds the first read's latency, cache bandwidth, partially filled instructions, and
/// the addition of pieces.
struct ProductFloor {
  double seconds = 0;
  std::string_view bound;  ///< limiting resource, as in ProductTime
  bool cut = false;
};
[[nodiscard]] ProductFloor product_floor(const TensorMachine& machine, const ProductShape& shape);
/// Returns "cache" or "cache, adding pieces".
[[nodiscard]] std::string described(const ProductFloor& floor);
/// Returns all tiles that kernels are made with, undivided.
[[nodiscard]] const std::vector<ProductTile>& product_tiles();
/// Returns the launchable tiles and divisions, by ascending time.
[[nodiscard]] std::vector<ProductTile> ranked_tiles(const TensorMachine& machine,
                                                    const ProductShape& shape);
/// Returns the first of them.
[[nodiscard]] ProductTile choose_tile(const TensorMachine& machine, const ProductShape& shape);

}  // namespace pw::cuda
