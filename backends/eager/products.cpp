// Converts blocks to f32, and applies bias and scales before the single rounding.
#include <Eigen/Core>
#include <array>
#include <string_view>
#include <type_traits>
#include <vector>

#include "backends/eager/kernels.hpp"
#include "tensor/linalg/choices.hpp"
#include "tensor/linalg/gemm.hpp"
#include "tensor/linalg/torch_kernels.hpp"

namespace pw::eager {
namespace {

template <class T>
using Values = Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix matrix_of(const Array& x) {
  return {x.dtype, x.data, x.extents[0], x.extents[1], x.strides[0], x.strides[1]};
}

/// Returns all elements of an operand as one row.
template <class T>
Values<T> row_of(const Array& x) {
  const Array packed = contiguous(x);
  Values<T> row(1, packed.count());
  load_run(packed.dtype, packed.data, 1, packed.count(), row.data());
  return row;
}

/// A product that becomes the call's result: computed in its memory if the dtypes agree, otherwise
/// rounded into it.
template <class T>
class Product {
 public:
  /// Adds a row of as many columns, unless it is null, where has_bias() is true.
  Product(Call& call, std::size_t a, std::size_t b, const T* bias = nullptr)
      : y_(call.results[0]),
        rows_(call.operand(a).extents[0]),
        columns_(call.operand(b).extents[1]) {
    if (y_.dtype != kStoredAs<T>) own_.resize(rows_, columns_);
    values_ = own_.size() > 0 ? own_.data() : reinterpret_cast<T*>(y_.data);
    const Matrix left = matrix_of(call.operand(a)), right = matrix_of(call.operand(b));
    if constexpr (std::is_same_v<T, float>) {
      if (left.dtype == DType::f32 && right.dtype == DType::f32) {
        fastest_gemm(left, right, bias, values_);
        has_bias_ = bias != nullptr;
        return;
      }
    }
    gemm(left, right, values_);
  }

  /// Calls change(row, its number) for each row before rounding.
  template <class Change>
  Status rows(const Change& change) {
    over_rows(y_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        Eigen::Map<Eigen::Array<T, 1, Eigen::Dynamic>> row(values_ + i * columns_, columns_);
        change(row, i);
        round(i);
      }
    });
    return {};
  }
  Status done() {
    if (own_.size() == 0) return {};
    return rows([](auto&, std::int64_t) {});
  }
  [[nodiscard]] bool has_bias() const { return has_bias_; }
  [[nodiscard]] std::int64_t row_count() const { return rows_; }
  [[nodiscard]] std::int64_t column_count() const { return columns_; }

 private:
  void round(std::int64_t i) {
    if (own_.size() == 0) return;
    store_run(y_.dtype, y_.data + i * columns_ * size_of(y_.dtype), 1, columns_,
              own_.data() + i * columns_);
  }

  Array& y_;
  std::int64_t rows_, columns_;
  Values<T> own_;
  T* values_ = nullptr;
  bool has_bias_ = false;
};

/// Runs the product of operands a and a + 1 by PyTorch's kernel or by ours, whichever is faster;
/// fastest_gemm() chooses for single matrices of f32.
Status fastest_product(Call& call, std::size_t a, const Array* bias, Kernel own) {
  static constexpr std::array<std::string_view, 2> kKernels{kTorchKernel, kOwnKernel};
  const Array &x = call.operand(a), &w = call.operand(a + 1);
  const Array y = call.result();
  const bool narrow = x.dtype == DType::bf16, batch = x.rank() == 3;
  if (!narrow && (!batch || x.dtype != DType::f32)) return own(call);
  KernelClass operands{
      batch ? (narrow ? "products of bf16" : "products of f32") : "product of bf16",
      {},
      {bias != nullptr ? "with bias" : "", w.strides[w.rank() - 1] == 1 ? "" : "b by columns"},
      y.count() * x.extents.back()};
  if (batch) operands.sizes[0] = y.extents[0];
  const std::size_t first = batch ? 1 : 0;
  operands.sizes[first] = y.extents[first];
  operands.sizes[first + 1] = x.extents.back();
  operands.sizes[first + 2] = y.extents.back();
  Status status;
  run_fastest(operands, kKernels, [&](std::size_t i) {
    if (i == 0) return lent_product(x, w, bias, y);
    status = own(call);
    return true;
  });
  return status;
}

template <class T>
Status run_mm(Call& call) {
  return Product<T>(call, 0, 1).done();
}
Status mm_of_integers(Call& call) {
  Array& y = call.results[0];
  std::vector<std::int64_t> values(static_cast<std::size_t>(y.count()));
  gemm(matrix_of(call.operand(0)), matrix_of(call.operand(1)), values.data());
  store_run(y.dtype, y.data, 1, y.count(), values.data());
  return {};
}
Status mm(Call& call) {
  if (is_integer(call.operand_dtype(0))) {
    call.result();
    return mm_of_integers(call);
  }
  const bool wide = call.operand_dtype(0) == DType::f64;
  return fastest_product(call, 0, nullptr, wide ? run_mm<double> : run_mm<float>);
}

/// Returns the matrices in the last two dims, in row-major order of the others.
std::vector<Matrix> matrices_of(const Array& x) {
  const std::size_t rows = x.extents.size() - 2;
  const Extents batch(x.extents.begin(), x.extents.end() - 2);
  const Extents steps[] = {{x.strides.begin(), x.strides.end() - 2}};
  std::vector<Matrix> out;
  for_each_run(batch, steps, std::int64_t{1} << 60, [&](const Run& run) {
    for (std::int64_t i = 0; i < run.length; ++i)
      out.push_back({x.dtype, x.at(run.offsets[0] + i * run.steps[0]), x.extents[rows],
                     x.extents[rows + 1], x.strides[rows], x.strides[rows + 1]});
  });
  return out;
}

template <class T>
Status run_bmm(Call& call) {
  Array& y = call.results[0];
  const auto a = matrices_of(call.operand(0)), b = matrices_of(call.operand(1));
  if (y.dtype == kStoredAs<T>) {
    gemm_each(a, b, reinterpret_cast<T*>(y.data));
    return {};
  }
  Values<T> values(1, y.count());
  gemm_each(a, b, values.data());
  store_run(y.dtype, y.data, 1, y.count(), values.data());
  return {};
}
Status bmm_of_integers(Call& call) {
  Array& y = call.results[0];
  const auto a = matrices_of(call.operand(0)), b = matrices_of(call.operand(1));
  std::vector<std::int64_t> values(static_cast<std::size_t>(y.count()));
  for (std::size_t i = 0; i < a.size(); ++i)
    gemm(a[i], b[i], values.data() + static_cast<std::int64_t>(i) * a[i].rows * b[i].columns);
  store_run(y.dtype, y.data, 1, y.count(), values.data());
  return {};
}
Status bmm(Call& call) {
  if (is_integer(call.operand_dtype(0))) {
    call.result();
    return bmm_of_integers(call);
  }
  const bool wide = call.operand_dtype(0) == DType::f64;
  return fastest_product(call, 0, nullptr, wide ? run_bmm<double> : run_bmm<float>);
}

template <class T>
Status run_grouped_mm(Call& call) {
  const Array &x = call.operand(0), &w = call.operand(1);
  Array& y = call.result();
  const auto ends = group_ends(call);
  if (!ends) return tl::unexpected(ends.error());
  Values<T> rows = Values<T>::Zero(y.extents[0], y.extents[1]);
  std::int64_t begin = 0;
  for (std::size_t g = 0; g < ends->size(); begin = (*ends)[g++]) {
    Matrix part = matrix_of(x);
    part.data = x.at(begin * x.strides[0]);
    part.rows = (*ends)[g] - begin;
    if (part.rows == 0) continue;
    const Matrix weight{w.dtype,      w.at(static_cast<std::int64_t>(g) * w.strides[0]),
                        w.extents[1], w.extents[2],
                        w.strides[1], w.strides[2]};
    gemm(part, weight, rows.data() + begin * y.extents[1]);
  }
  store_run(y.dtype, y.data, 1, y.count(), rows.data());
  return {};
}
Status grouped_mm(Call& call) {
  return call.operand_dtype(0) == DType::f64 ? run_grouped_mm<double>(call)
                                             : run_grouped_mm<float>(call);
}

template <class T>
Status run_addmm(Call& call) {
  const Values<T> bias = row_of<T>(call.operand(0));
  const bool whole = bias.cols() == call.operand(2).extents[1];
  Product<T> product(call, 1, 2, whole ? bias.data() : nullptr);
  if (product.has_bias()) return product.done();
  return product.rows([&](auto& row, std::int64_t) {
    if (bias.cols() == 1) {
      row += bias(0, 0);
    } else {
      row += bias.row(0);
    }
  });
}
Status addmm(Call& call) {
  const bool wide = call.operand_dtype(1) == DType::f64;
  return fastest_product(call, 1, &call.operand(0), wide ? run_addmm<double> : run_addmm<float>);
}

Status scaled_mm(Call& call) {
  call.result();
  Product<float> c(call, 0, 1);
  const Values<float> sa = row_of<float>(call.operand(2)), sb = row_of<float>(call.operand(3));
  if ((sa.cols() != 1 && sa.cols() != c.row_count()) ||
      (sb.cols() != 1 && sb.cols() != c.column_count()))
    return fail_call(call, "PW1203",
                     "the scales need one element, or one per row (sa) and one per column (sb)");
  return c.rows([&](auto& row, std::int64_t i) {
    row *= sa(0, sa.cols() == 1 ? 0 : i);
    if (sb.cols() == 1) {
      row *= sb(0, 0);
    } else {
      row *= sb.row(0);
    }
  });
}

constexpr KernelEntry kProducts[] = {{Primitive::mm, mm},
                                     {Primitive::addmm, addmm},
                                     {Primitive::bmm, bmm},
                                     {Primitive::grouped_mm, grouped_mm},
                                     {Primitive::scaled_mm, scaled_mm}};

}  // namespace

KernelTable products() { return kProducts; }

}  // namespace pw::eager
