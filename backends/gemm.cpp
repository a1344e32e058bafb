// Exports matrix products: blocking, conversion, the choice of instruction set.
#include "backends/gemm.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/array.hpp"
#include "backends/blas.hpp"
#include "backends/gemm_kernel.hpp"
#include "backends/instruction_set.hpp"
#include "backends/lent_torch.hpp"
#include "backends/parallel.hpp"

namespace pw {
namespace {

constexpr std::int64_t kDepth = 512, kColumns = 128;

const std::byte* at(const Matrix& m, std::int64_t row, std::int64_t column) {
  return m.data + (row * m.row_step + column * m.column_step) * size_of(m.dtype);
}

/// Converts a block to packed row-major.
template <class Scalar>
void pack(const Matrix& m, std::int64_t row, std::int64_t rows, std::int64_t column,
          std::int64_t columns, Scalar* out) {
  for (std::int64_t r = 0; r < rows; ++r)
    load_run(m.dtype, at(m, row + r, column), m.column_step, columns, out + r * columns);
}
Matrix transposed(const Matrix& m) {
  return {m.dtype, m.data, m.columns, m.rows, m.column_step, m.row_step};
}

template <class Scalar>
using Multiply = void(const BlockProduct<Scalar>&);

/// One depth block of a, packed, times all columns of b, of which a core takes at least `grain`.
template <class Scalar>
void multiply_depth(const Matrix& b, const Scalar* a, std::int64_t rows, std::int64_t k,
                    std::int64_t depth, std::int64_t grain, Scalar* c) {
  const bool transpose = b.column_step != 1 && b.row_step == 1;
  Multiply<Scalar>* const multiply =
      for_this_machine<Multiply<Scalar>>(PW_VARIANTS(multiply_block));
  parallel_for(b.columns, grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Scalar> block(static_cast<std::size_t>(depth * std::min(kColumns, end - begin)));
    for (std::int64_t j = begin; j < end; j += kColumns) {
      const std::int64_t columns = std::min(kColumns, end - j);
      if (transpose) {
        pack(transposed(b), j, columns, k, depth, block.data());
      } else {
        pack(b, k, depth, j, columns, block.data());
      }
      multiply({a, block.data(), c + j, rows, depth, columns, b.columns, transpose});
    }
  });
}

bool is_lent(const Matrix& a, const Matrix& b, float* c) {
  return lent_product(a, b, c) || blas_gemm(a, b, c);
}
bool is_lent(const Matrix& a, const Matrix& b, double* c) { return blas_gemm(a, b, c); }

template <class Scalar>
void multiply(const Matrix& a, const Matrix& b, std::int64_t grain, Scalar* c) {
  if (is_lent(a, b, c)) return;
  std::fill(c, c + a.rows * b.columns, Scalar(0));
  std::vector<Scalar> packed(static_cast<std::size_t>(a.rows * std::min(kDepth, a.columns)));
  for (std::int64_t k = 0; k < a.columns; k += kDepth) {
    const std::int64_t depth = std::min(kDepth, a.columns - k);
    pack(a, 0, a.rows, k, depth, packed.data());
    multiply_depth(b, packed.data(), a.rows, k, depth, grain, c);
  }
}

template <class Scalar>
void multiply_each(std::span<const Matrix> a, std::span<const Matrix> b, Scalar* c) {
  constexpr std::int64_t kMany = 8, kWorthAThread = 1 << 18;
  if (a.empty()) return;
  const auto count = static_cast<std::int64_t>(a.size());
  const std::int64_t size = a[0].rows * b[0].columns;
  const auto run = [&](std::int64_t begin, std::int64_t end, std::int64_t grain) {
    for (std::int64_t i = begin; i < end; ++i)
      multiply(a[static_cast<std::size_t>(i)], b[static_cast<std::size_t>(i)], grain, c + i * size);
  };
  if (count < kMany) return run(0, count, kColumns);
  parallel_for(count, 1 + kWorthAThread / (size * a[0].columns + 1),
               [&](std::int64_t begin, std::int64_t end) { run(begin, end, b[0].columns + 1); });
}

}  // namespace

void gemm(const Matrix& a, const Matrix& b, float* c) { multiply(a, b, kColumns, c); }
void gemm(const Matrix& a, const Matrix& b, double* c) { multiply(a, b, kColumns, c); }

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
