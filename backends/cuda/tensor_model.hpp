// A static model of how long a tensor-core kernel takes: waves of blocks, each bound by its
// multiplications, by the bytes it moves or by what memory gives to so many reads under way. It
// chooses tiles where there is no device to measure on. Its times are no measurements.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace pw::cuda {

/// What a multiprocessor multiplies with `mma`, and how fast.
struct TensorMachine {
  std::string_view arch, name;
  int multiprocessors = 0;
  int threads = 2048;             ///< of one multiprocessor at once
  std::int64_t shared_bytes = 0;  ///< of one multiprocessor
  double bandwidth = 0;           ///< of memory, bytes a second
  double flops = 0;               ///< a second of 16-bit operands with f32 sums, by `mma.sync`
  double byte_flops = 0;          ///< of fp8 operands; 0: none
};

/// Null for an architecture that is not known.
[[nodiscard]] const TensorMachine* tensor_machine(std::string_view arch);

struct ProductTile {
  int rows = 64, columns = 64;  ///< of a block
  int down = 2, across = 2;     ///< warps
  int stages = 4;               ///< tiles of 128 bytes of k in shared memory
  [[nodiscard]] int threads() const { return 32 * down * across; }
  [[nodiscard]] std::int64_t shared_bytes() const {
    return std::int64_t{stages} * (rows + columns) * 128;
  }
  friend bool operator==(const ProductTile&, const ProductTile&) = default;
};

struct ProductShape {
  std::int64_t rows = 0, depth = 0, columns = 0;
  std::int64_t in_bytes = 2, out_bytes = 2;  ///< of an element
};

/// Seconds: the larger of what bandwidth and multiplications alone would take.
[[nodiscard]] double product_bound(const TensorMachine& machine, const ProductShape& shape);
[[nodiscard]] double product_time(const TensorMachine& machine, const ProductShape& shape,
                                  const ProductTile& tile);
/// All that kernels are made with.
[[nodiscard]] const std::vector<ProductTile>& product_tiles();
/// The one of least time; of equal ones the first.
[[nodiscard]] ProductTile choose_tile(const TensorMachine& machine, const ProductShape& shape);

}  // namespace pw::cuda
