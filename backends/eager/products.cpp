// Exports matrix products: f32 from converted blocks, bias and scales applied before the one
// rounding.
#include <Eigen/Core>

#include "backends/eager/kernels.hpp"
#include "backends/gemm.hpp"

namespace pw::eager {
namespace {

using Done = Result<std::monostate>;
template <class T>
using Values = Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix matrix_of(const Array& x) {
  return {x.dtype, x.data, x.extents[0], x.extents[1], x.strides[0], x.strides[1]};
}

template <class T>
Values<T> product(const Array& a, const Array& b) {
  Values<T> c(a.extents[0], b.extents[1]);
  gemm(matrix_of(a), matrix_of(b), c.data());
  return c;
}

/// All elements of an operand as one row.
template <class T>
Values<T> row_of(const Array& x) {
  const Array packed = contiguous(x);
  Values<T> row(1, packed.count());
  load_run(packed.dtype, packed.data, 1, packed.count(), row.data());
  return row;
}

template <class T>
Done finish(Call& call, const Values<T>& values) {
  Array& y = call.result();
  store_run(y.dtype, y.data, 1, y.count(), values.data());
  return Done{};
}

template <class T>
Done run_mm(Call& call) {
  return finish<T>(call, product<T>(call.operand(0), call.operand(1)));
}
Done mm(Call& call) {
  return call.operand_dtype(0) == DType::f64 ? run_mm<double>(call) : run_mm<float>(call);
}

template <class T>
Done run_addmm(Call& call) {
  Values<T> c = product<T>(call.operand(1), call.operand(2));
  c.rowwise() += row_of<T>(call.operand(0)).row(0);
  return finish<T>(call, c);
}
Done addmm(Call& call) {
  return call.operand_dtype(1) == DType::f64 ? run_addmm<double>(call) : run_addmm<float>(call);
}

Done scaled_mm(Call& call) {
  Values<float> c = product<float>(call.operand(0), call.operand(1));
  const Values<float> sa = row_of<float>(call.operand(2)), sb = row_of<float>(call.operand(3));
  if ((sa.cols() != 1 && sa.cols() != c.rows()) || (sb.cols() != 1 && sb.cols() != c.cols())) {
    return fail_call(call, "PW1203",
                     "the scales have neither one element nor one a row (sa) or a column (sb)");
  }
  for (Eigen::Index i = 0; i < c.rows(); ++i) c.row(i) *= sa(0, sa.cols() == 1 ? 0 : i);
  if (sb.cols() == 1) {
    c *= sb(0, 0);
  } else {
    c.rowwise() *= sb.row(0);
  }
  return finish<float>(call, c);
}

constexpr KernelEntry kProducts[] = {{"mm", mm}, {"addmm", addmm}, {"scaled_mm", scaled_mm}};

}  // namespace

KernelTable products() { return kProducts; }

}  // namespace pw::eager
