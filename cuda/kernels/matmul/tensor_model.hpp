// A static model of how long a product on tensor cores takes: waves of blocks, each bound by its
// multiplications, by the bytes it moves, by what shared memory gives its warps, or by what memory
// gives to so many reads under way. It chooses tiles where there is no device to measure on. Its
// times are no measurements.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/kernels/matmul/tensor_machine.hpp"

namespace pw::cuda {

struct ProductTile {
  int rows = 64, columns = 64;  ///< of a block
  int down = 2, across = 2;     ///< warps
  int stages = 4;               ///< tiles of 128 bytes of k in shared memory
  int shares = 0;               ///< blocks of a row of tiles, see ProductDivision; 0: one a tile
  /// Warpgroups multiply, by `wgmma`: four warps 64 rows, whose 16-bit operands stay in shared
  /// memory. One group stands below the other: `across` is 1.
  bool grouped = false;
  [[nodiscard]] int threads() const { return 32 * down * across; }
  [[nodiscard]] std::int64_t shared_bytes() const {
    return std::int64_t{stages} * (rows + (grouped ? (columns + 63) / 64 * 64 : columns)) * 128;
  }
  /// How often a step's columns are loaded from shared memory: by each warp, or group, of rows.
  [[nodiscard]] int down_loads() const { return grouped ? down / 4 : down; }
  /// Whether there is a kernel for it: groups multiply elements of 16 bits, on machines that have
  /// instructions of groups.
  [[nodiscard]] bool fits(const TensorMachine& machine, std::int64_t in_bytes) const {
    return !grouped || (machine.group_flops != 0 && in_bytes == 2);
  }
  /// Its threads have no registers to copy elements one by one.
  [[nodiscard]] bool words_only() const { return threads() > 256 && sums() > 96; }
  /// Of a thread.
  [[nodiscard]] int sums() const { return rows * columns / threads(); }
  /// Of a thread, about: its sums, fragments of a and b, and what else there is.
  [[nodiscard]] int registers() const;
  friend bool operator==(const ProductTile&, const ProductTile&) = default;
};

/// "128x256, 2 x 4 warps, 3 stages, 132 shares", "128x256, 2 warpgroups, 4 stages".
[[nodiscard]] std::string described(const ProductTile& tile);

struct ProductShape {
  std::int64_t rows = 0, depth = 0, columns = 0;
  std::int64_t in_bytes = 2, out_bytes = 2;  ///< of an element
};

/// How the steps of a row of tiles, each 128 bytes of k, are divided among blocks: those of its
/// first tile first, in shares of equally many, or one more ("Stream-K", Osama et al. 2023, a row
/// of tiles at a time, so that the order of a result's sums does not depend on other rows). What a
/// share has of a tile is a piece. Where a tile has several pieces, their sums are written, that of
/// share s and tile t as number s + t, and the blocks whose last piece is of a tile add its pieces,
/// ascending, each those of a part of the tile.
struct ProductDivision {
  static constexpr std::int64_t kMostPieces = 32;  ///< of a tile
  std::int64_t deep = 0, across = 0;               ///< steps of a tile; tiles of a row
  std::int64_t shares = 0;
  std::int64_t pieces = 0, most_pieces = 1;  ///< of a row; of one of its tiles
  std::int64_t whole = 0;                    ///< tiles of a row that are one piece
  [[nodiscard]] std::int64_t steps() const { return deep * across; }  ///< of a row
  [[nodiscard]] std::int64_t most_steps() const { return (steps() + shares - 1) / shares; }
  [[nodiscard]] bool cut() const { return pieces > across; }
  [[nodiscard]] std::int64_t begin(std::int64_t share) const { return share * steps() / shares; }
  /// Whose a step is.
  [[nodiscard]] std::int64_t share_of(std::int64_t step) const {
    return ((step + 1) * shares - 1) / steps();
  }
  [[nodiscard]] std::int64_t pieces_of(std::int64_t tile) const {
    return share_of((tile + 1) * deep - 1) - share_of(tile * deep) + 1;
  }
  /// Blocks that add its pieces, where it has several: all of them, but the last where that goes on
  /// with the next tile.
  [[nodiscard]] std::int64_t adders_of(std::int64_t tile) const {
    const std::int64_t last = share_of((tile + 1) * deep - 1);
    return pieces_of(tile) - (begin(last + 1) > (tile + 1) * deep ? 1 : 0);
  }
};
[[nodiscard]] ProductDivision divided(const ProductShape& shape, const ProductTile& tile);

/// How adders share out a tile: by squares of 16 of a warp's rows and columns, `together` of them
/// at a time, of which a thread reads the sums of `at_once` pieces at a time.
struct TileSquares {
  std::int64_t all = 0, together = 0, at_once = 0;
  [[nodiscard]] std::int64_t groups() const { return (all + together - 1) / together; }
};
[[nodiscard]] TileSquares squares_of(const ProductTile& tile, std::int64_t most_pieces);

/// Seconds from a block's last piece on, until its sums are there, it is counted, it sees that all
/// are, and has read the first of others' sums; and of what a multiprocessor takes from the cache,
/// how much of sums. Fitted as the rest of the model.
inline constexpr double kMeeting = 3e-6, kAddingPort = 0.32 / kReachedPort;

struct ProductTime {
  double seconds = 0;      ///< infinite where a block does not fit
  std::string_view bound;  ///< what takes longest: "memory", "cache", "shared memory" or "mma"
  double adding = 0;       ///< of the seconds: from the end of the last piece on
};

/// Blocks that a multiprocessor holds at once of a product of elements of so many bytes, which
/// bounds the registers of its kernel; 0 where a block does not fit, or the machine does not
/// multiply so.
[[nodiscard]] std::int64_t resident(const TensorMachine& machine, const ProductTile& tile,
                                    std::int64_t in_bytes);
/// Seconds: the larger of what bandwidth and multiplications alone would take.
[[nodiscard]] double product_bound(const TensorMachine& machine, const ProductShape& shape);
[[nodiscard]] ProductTime product_time(const TensorMachine& machine, const ProductShape& shape,
                                       const ProductTile& tile);
/// What the model gives to the best of all tiles of whole instructions whose sums fit in registers,
/// divided as well as can be, on as many multiprocessors as is best: no kernel of this kind takes
/// less. More than the bound: the first read's latency, what the second-level cache has
/// to give, instructions that are not full, and what adds the pieces of tiles that are cut.
struct ProductFloor {
  double seconds = 0;
  std::string_view bound;  ///< what of it takes longest, as of ProductTime
  bool cut = false;
};
[[nodiscard]] ProductFloor product_floor(const TensorMachine& machine, const ProductShape& shape);
/// "cache" or "cache, adding pieces".
[[nodiscard]] std::string described(const ProductFloor& floor);
/// All that kernels are made with, undivided.
[[nodiscard]] const std::vector<ProductTile>& product_tiles();
/// Those of all tiles and divisions that can be launched, the one of least time first.
[[nodiscard]] std::vector<ProductTile> ranked_tiles(const TensorMachine& machine,
                                                    const ProductShape& shape);
/// The first of them.
[[nodiscard]] ProductTile choose_tile(const TensorMachine& machine, const ProductShape& shape);

}  // namespace pw::cuda
