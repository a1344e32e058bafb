// Matrix products by blocking and packing (Goto and van de Geijn 2008,
// doi:10.1145/1356052.1356053): a block of b is converted and packed into panels, tiles of a into
// rows, and a register-blocked kernel multiplies them.
//
// Invariant: sums are cut at multiples of kDepth in k whatever the extents, and a tile adds in
// ascending k. An element thus depends on its row of a, its column of b and their length alone, not
// on the blocking, the threads or its place. Cost: O(m · n · k) multiplications; b is converted
// once for each block of rows, and memory for the packed blocks is bounded by kMostPacked and a
// thread's panel.
#include "tensor/linalg/gemm.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tensor/array.hpp"
#include "tensor/instruction_set.hpp"
#include "tensor/linalg/blas.hpp"
#include "tensor/linalg/choices.hpp"
#include "tensor/linalg/gemm_kernel.hpp"
#include "tensor/linalg/torch_kernels.hpp"
#include "tensor/parallel.hpp"

namespace pw {
namespace {

/// Sums are cut at multiples of kDepth, whatever the extents; see the invariant above.
constexpr std::int64_t kDepth = 512;
constexpr std::int64_t kColumns = 128, kRows = 252;  ///< of a block that a thread computes at once
constexpr std::int64_t kMostPacked = 1 << 22;        ///< elements of a

const std::byte* at(const Matrix& m, std::int64_t row, std::int64_t column) {
  return m.data + (row * m.row_step + column * m.column_step) * size_of(m.dtype);
}

template <class Scalar>
const BlockKernel<Scalar>& block_kernel();
template <>
const BlockKernel<float>& block_kernel() {
  static const auto kernel =
      for_this_machine<BlockKernel<float>()>(PW_VARIANTS(block_kernel_f32))();
  return kernel;
}
template <>
const BlockKernel<double>& block_kernel() {
  static const auto kernel =
      for_this_machine<BlockKernel<double>()>(PW_VARIANTS(block_kernel_f64))();
  return kernel;
}

/// A range of depths of all rows of a, converted: by blocks of kDepth, then tiles of rows,
/// [depth][rows].
template <class Scalar>
class PackedRows {
 public:
  PackedRows(const Matrix& a, std::int64_t first, std::int64_t depth, bool parallel)
      : a_(a), first_(first), depth_(depth), height_(block_kernel<Scalar>().rows) {
    values_.resize(static_cast<std::size_t>(a.rows * depth));
    const std::int64_t tiles = (a.rows + height_ - 1) / height_;
    const auto run = [this](std::int64_t begin, std::int64_t end) { pack(begin, end); };
    if (parallel)
      parallel_for(tiles, 1 + kNumbersWorthAThread / (height_ * depth + 1), run);
    else
      run(0, tiles);
  }

  [[nodiscard]] std::int64_t rows() const { return a_.rows; }
  /// Returns the tile from `row` on, in the block from depth `k` on.
  [[nodiscard]] const Scalar* tile(std::int64_t row, std::int64_t k) const {
    return values_.data() + place(row, k);
  }

 private:
  static constexpr std::int64_t kNumbersWorthAThread = 1 << 15;

  [[nodiscard]] std::int64_t place(std::int64_t row, std::int64_t k) const {
    return (k - first_) * a_.rows + row * std::min(kDepth, first_ + depth_ - k);
  }

  void pack(std::int64_t begin, std::int64_t end) {
    std::vector<Scalar> line(static_cast<std::size_t>(depth_));
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const std::int64_t row = tile * height_, rows = std::min(height_, a_.rows - row);
      for (std::int64_t r = 0; r < rows; ++r) {
        load_run(a_.dtype, at(a_, row + r, first_), a_.column_step, depth_, line.data());
        for (std::int64_t k = first_; k < first_ + depth_; k += kDepth) {
          Scalar* const to = values_.data() + place(row, k) + r;
          const std::int64_t count = std::min(kDepth, first_ + depth_ - k);
          for (std::int64_t i = 0; i < count; ++i)
            to[i * rows] = line[static_cast<std::size_t>(k - first_ + i)];
        }
      }
    }
  }

  const Matrix& a_;
  std::int64_t first_, depth_, height_;
  std::vector<Scalar> values_;
};

/// Some converted columns of b: panels of the kernel's width, [depth][columns], the last one padded
/// with zeros.
template <class Scalar>
class PackedColumns {
 public:
  void pack(const Matrix& b, std::int64_t k, std::int64_t depth, std::int64_t column,
            std::int64_t columns) {
    wide_ = block_kernel<Scalar>().columns;
    depth_ = depth;
    values_.resize(static_cast<std::size_t>((columns + wide_ - 1) / wide_ * wide_ * depth));
    if (b.column_step != 1 && b.row_step == 1)
      pack_columns(b, k, column, columns);
    else
      pack_rows(b, k, column, columns);
  }

  [[nodiscard]] Scalar* panel(std::int64_t i) { return values_.data() + i * wide_ * depth_; }

 private:
  void pack_columns(const Matrix& b, std::int64_t k, std::int64_t column, std::int64_t columns) {
    const std::int64_t padded = (columns + wide_ - 1) / wide_ * wide_;
    line_.resize(static_cast<std::size_t>(kTurned * depth_));
    for (std::int64_t j = 0; j < padded; j += kTurned) {
      const std::int64_t count = std::clamp<std::int64_t>(columns - j, 0, kTurned);
      const bool in_place = b.dtype == kStoredAs<Scalar> && count == kTurned;
      for (std::int64_t i = 0; i < count && !in_place; ++i)
        load_run(b.dtype, at(b, k, column + j + i), 1, depth_, line_.data() + i * depth_);
      if (count < kTurned) std::fill(line_.begin() + count * depth_, line_.end(), Scalar(0));
      block_kernel<Scalar>().turn(
          in_place ? reinterpret_cast<const Scalar*>(at(b, k, column + j)) : line_.data(),
          in_place ? b.column_step : depth_, depth_, panel(j / wide_) + j % wide_);
    }
  }

  void pack_rows(const Matrix& b, std::int64_t k, std::int64_t column, std::int64_t columns) {
    const std::int64_t panels = (columns + wide_ - 1) / wide_;
    const bool in_place =
        b.dtype == kStoredAs<Scalar> && b.column_step == 1 && panels * wide_ == columns;
    line_.assign(static_cast<std::size_t>(panels * wide_), Scalar(0));
    for (std::int64_t i = 0; i < depth_; ++i) {
      const std::byte* const row = at(b, k + i, column);
      if (!in_place) load_run(b.dtype, row, b.column_step, columns, line_.data());
      block_kernel<Scalar>().spread(in_place ? reinterpret_cast<const Scalar*>(row) : line_.data(),
                                    panels, wide_ * depth_, values_.data() + i * wide_);
    }
  }

  std::int64_t wide_ = 0, depth_ = 0;
  std::vector<Scalar> values_, line_;
};

/// Computes blocks of kRows × kColumns of a product on one thread.
template <class Scalar>
class PartOfProduct {
 public:
  PartOfProduct(const PackedRows<Scalar>& a, const Matrix& b, Scalar* c)
      : a_(a), b_(b), c_(c), rows_(a.rows()), across_((b.columns + kColumns - 1) / kColumns) {}

  [[nodiscard]] std::int64_t blocks() const { return across_ * ((rows_ + kRows - 1) / kRows); }

  /// Computes blocks [first, last) for depths [k, end). Depths are the outer loop, so that rows of
  /// b read by neighbouring blocks are in the same pages.
  void run(std::int64_t first, std::int64_t last, std::int64_t k, std::int64_t end) {
    for (; k < end; k += kDepth)
      for (std::int64_t i = first; i < last; ++i)
        run_block(i / across_ * kRows, i % across_ * kColumns, k, std::min(kDepth, end - k));
  }

 private:
  void run_block(std::int64_t row, std::int64_t column, std::int64_t k, std::int64_t depth) {
    const BlockKernel<Scalar>& kernel = block_kernel<Scalar>();
    const std::int64_t end = std::min(row + kRows, rows_),
                       columns = std::min(kColumns, b_.columns - column);
    packed_.pack(b_, k, depth, column, columns);
    for (std::int64_t j = 0; j < columns; j += kernel.columns)
      for (std::int64_t r = row; r < end; r += kernel.rows) {
        const BlockTile<Scalar> tile{a_.tile(r, k), packed_.panel(j / kernel.columns),
                                     depth,         c_ + r * b_.columns + column + j,
                                     b_.columns,    k > 0};
        run_tile(tile, std::min(kernel.rows, end - r), std::min(kernel.columns, columns - j));
      }
  }

  /// Uses a copy for a panel with missing columns.
  void run_tile(BlockTile<Scalar> tile, std::int64_t rows, std::int64_t columns) {
    const BlockKernel<Scalar>& kernel = block_kernel<Scalar>();
    if (columns == kernel.columns) return kernel.tile(rows, tile);
    const auto copy_rows = [&](const Scalar* from, std::int64_t from_step, Scalar* to,
                               std::int64_t to_step) {
      for (std::int64_t r = 0; r < rows; ++r)
        std::copy_n(from + r * from_step, columns, to + r * to_step);
    };
    Scalar* const c = tile.c;
    narrow_.resize(static_cast<std::size_t>(rows * kernel.columns));
    if (tile.add) copy_rows(c, tile.c_step, narrow_.data(), kernel.columns);
    tile.c = narrow_.data();
    tile.c_step = kernel.columns;
    kernel.tile(rows, tile);
    copy_rows(narrow_.data(), kernel.columns, c, b_.columns);
  }

  const PackedRows<Scalar>& a_;
  const Matrix& b_;
  Scalar* c_;
  std::int64_t rows_, across_;
  PackedColumns<Scalar> packed_;
  std::vector<Scalar> narrow_;
};

using LentKernel = bool(const Matrix& a, const Matrix& b, const float* bias, float* c);
struct LentProduct {
  std::string_view name;
  LentKernel* run;
};

/// Lent kernels in the order of their speed on most operands: MKL halves its vectors on other
/// processors than Intel's.
const std::array<LentProduct, 2>& lent_products() {
  constexpr LentProduct kBlas{"BLAS", blas_gemm}, kOneDnn{"oneDNN", lent_product};
  static const std::array<LentProduct, 2> in_order =
      is_intel() ? std::array{kBlas, kOneDnn} : std::array{kOneDnn, kBlas};
  return in_order;
}

bool is_lent(const Matrix& a, const Matrix& b, float* c) {
  const auto& kernels = lent_products();
  return kernels[0].run(a, b, nullptr, c) || kernels[1].run(a, b, nullptr, c);
}
bool is_lent(const Matrix& a, const Matrix& b, double* c) { return blas_gemm(a, b, c); }

/// Computes the product by our own kernel.
template <class Scalar>
void multiply_blocks(const Matrix& a, const Matrix& b, bool parallel, Scalar* c) {
  if (a.columns == 0) std::fill(c, c + a.rows * b.columns, Scalar(0));
  if (a.rows == 0 || b.columns == 0) return;
  const std::int64_t step = std::max(kMostPacked / a.rows / kDepth, std::int64_t{1}) * kDepth;
  for (std::int64_t k = 0; k < a.columns; k += step) {
    const std::int64_t end = std::min(k + step, a.columns);
    const PackedRows<Scalar> packed(a, k, end - k, parallel);
    const auto run = [&](std::int64_t first, std::int64_t last) {
      PartOfProduct<Scalar>(packed, b, c).run(first, last, k, end);
    };
    const std::int64_t blocks = PartOfProduct<Scalar>(packed, b, c).blocks();
    if (parallel)
      parallel_for(blocks, 1, run);
    else
      run(0, blocks);
  }
}

/// Adds a row to each row of c.
void add_to_rows(const float* bias, std::int64_t rows, std::int64_t columns, float* c) {
  constexpr std::int64_t kElementsWorthAThread = 1 << 14;
  parallel_for(rows, 1 + kElementsWorthAThread / (columns + 1),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i)
                   for (std::int64_t j = 0; j < columns; ++j) c[i * columns + j] += bias[j];
               });
}

template <class Scalar>
void multiply(const Matrix& a, const Matrix& b, bool parallel, Scalar* c) {
  if (!is_lent(a, b, c)) multiply_blocks(a, b, parallel, c);
}

template <class Scalar>
void multiply_each(std::span<const Matrix> a, std::span<const Matrix> b, Scalar* c) {
  constexpr std::int64_t kMany = 8, kWorthAThread = 1 << 18;
  if (a.empty()) return;
  const auto count = static_cast<std::int64_t>(a.size());
  const std::int64_t size = a[0].rows * b[0].columns;
  const auto run = [&](std::int64_t begin, std::int64_t end, bool parallel) {
    for (std::int64_t i = begin; i < end; ++i)
      multiply(a[static_cast<std::size_t>(i)], b[static_cast<std::size_t>(i)], parallel,
               c + i * size);
  };
  if (count < kMany) return run(0, count, true);
  parallel_for(count, 1 + kWorthAThread / (size * a[0].columns + 1),
               [&](std::int64_t begin, std::int64_t end) { run(begin, end, false); });
}

}  // namespace

void gemm(const Matrix& a, const Matrix& b, float* c) { multiply(a, b, true, c); }
void gemm(const Matrix& a, const Matrix& b, double* c) { multiply(a, b, true, c); }

void fastest_gemm(const Matrix& a, const Matrix& b, const float* bias, float* c) {
  const auto& lent = lent_products();
  static const std::array<std::string_view, 3> kernels{lent[0].name, lent[1].name, kOwnKernel};
  const auto layout = [](const Matrix& m, std::string_view by_columns) {
    return m.column_step != 1 && m.row_step == 1 ? by_columns : std::string_view();
  };
  const KernelClass operands{bias == nullptr ? "product of f32" : "product of f32 with bias",
                             {a.rows, a.columns, b.columns},
                             {layout(a, "a by columns"), layout(b, "b by columns")},
                             a.rows * a.columns * b.columns};
  run_fastest(operands, kernels, [&](std::size_t i) {
    if (i < lent.size()) return lent[i].run(a, b, bias, c);
    multiply_blocks(a, b, true, c);
    if (bias != nullptr) add_to_rows(bias, a.rows, b.columns, c);
    return true;
  });
}

void gemm(const Matrix& a, const Matrix& b, std::int64_t* c) {
  std::fill(c, c + a.rows * b.columns, 0);
  std::vector<std::int64_t> row(static_cast<std::size_t>(b.columns)),
      column(static_cast<std::size_t>(a.rows));
  const auto product = [](std::int64_t x, std::int64_t y) {
    return static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y);
  };
  for (std::int64_t k = 0; k < a.columns; ++k) {
    load_run(b.dtype, at(b, k, 0), b.column_step, b.columns, row.data());
    load_run(a.dtype, at(a, 0, k), a.row_step, a.rows, column.data());
    for (std::size_t i = 0; i < column.size(); ++i)
      for (std::size_t j = 0; j < row.size(); ++j) {
        std::int64_t& sum = c[i * row.size() + j];
        sum =
            static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) + product(column[i], row[j]));
      }
  }
}

void gemm_each(std::span<const Matrix> a, std::span<const Matrix> b, float* c) {
  multiply_each(a, b, c);
}
void gemm_each(std::span<const Matrix> a, std::span<const Matrix> b, double* c) {
  multiply_each(a, b, c);
}

void gemm_in_order(const Matrix& a, const Matrix& b, float* c) {
  std::fill(c, c + a.rows * b.columns, 0.0f);
  std::vector<float> row(static_cast<std::size_t>(b.columns)),
      column(static_cast<std::size_t>(a.rows));
  for (std::int64_t k = 0; k < a.columns; ++k) {
    load_run(b.dtype, at(b, k, 0), b.column_step, b.columns, row.data());
    load_run(a.dtype, at(a, 0, k), a.row_step, a.rows, column.data());
    for (std::int64_t i = 0; i < a.rows; ++i) {
      float* out = c + i * b.columns;
      const float x = column[static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j < b.columns; ++j)
        out[j] = std::fma(x, row[static_cast<std::size_t>(j)], out[j]);
    }
  }
}

}  // namespace pw
