// A static model of how long a product on tensor cores takes: waves of blocks, each bound by its
// multiplications, by the bytes it moves, by what shared memory gives its warps, or by what memory
// gives to so many reads under way. It chooses tiles where there is no device to measure on. Its
// times are no measurements.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/tensor_machine.hpp"

namespace pw::cuda {

struct ProductTile {
  int rows = 64, columns = 64;  ///< of a block
  int down = 2, across = 2;     ///< warps
  int stages = 4;               ///< tiles of 128 bytes of k in shared memory
  int parts = 1;                ///< of k, each a block of its own; added up by a second kernel
  [[nodiscard]] int threads() const { return 32 * down * across; }
  [[nodiscard]] std::int64_t shared_bytes() const {
    return std::int64_t{stages} * (rows + columns) * 128;
  }
  /// Of a thread.
  [[nodiscard]] int sums() const { return rows * columns / threads(); }
  /// Of a thread, about: its sums, fragments of a and b, and what else there is.
  [[nodiscard]] int registers() const;
  friend bool operator==(const ProductTile&, const ProductTile&) = default;
};

/// "128x256, 2 x 4 warps, 3 stages, 2 parts".
[[nodiscard]] std::string described(const ProductTile& tile);

struct ProductShape {
  std::int64_t rows = 0, depth = 0, columns = 0;
  std::int64_t in_bytes = 2, out_bytes = 2;  ///< of an element
};

/// Tiles of 128 bytes along k, of one part.
[[nodiscard]] std::int64_t tiles_of_part(const ProductShape& shape, int parts);

struct ProductTime {
  double seconds = 0;        ///< infinite where a block does not fit
  std::string_view bound;    ///< what takes longest: "memory", "cache", "shared memory" or "mma"
  double second_kernel = 0;  ///< of the seconds
};

/// Seconds: the larger of what bandwidth and multiplications alone would take.
[[nodiscard]] double product_bound(const TensorMachine& machine, const ProductShape& shape);
[[nodiscard]] ProductTime product_time(const TensorMachine& machine, const ProductShape& shape,
                                       const ProductTile& tile);
/// All that kernels are made with, of one part.
[[nodiscard]] const std::vector<ProductTile>& product_tiles();
/// Those of all tiles and numbers of parts that can be launched, the one of least time first.
[[nodiscard]] std::vector<ProductTile> ranked_tiles(const TensorMachine& machine,
                                                    const ProductShape& shape);
/// The first of them.
[[nodiscard]] ProductTile choose_tile(const TensorMachine& machine, const ProductShape& shape);

}  // namespace pw::cuda
