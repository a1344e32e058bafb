// Exports gemm_block, once for each instruction set: this file is compiled several times, with
// PW_GEMM naming the variant. Eigen's namespace is renamed with it, so that the linker cannot mix
// code of different instruction sets.
#define PW_JOIN_(a, b) a##b
#define PW_JOIN(a, b) PW_JOIN_(a, b)
#define Eigen PW_JOIN(Eigen_, PW_GEMM)
#define EIGEN_DONT_PARALLELIZE
#include "backends/gemm_kernel.hpp"

#include <Eigen/Core>

namespace pw::PW_GEMM {
namespace {

template <class Scalar>
using RowMajor = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class Scalar>
using View = Eigen::Map<const RowMajor<Scalar>>;
template <class Scalar>
using Target = Eigen::Map<RowMajor<Scalar>, 0, Eigen::OuterStride<>>;

template <class Scalar>
void multiply_add(const BlockProduct<Scalar>& p) {
  const View<Scalar> a(p.a, p.rows, p.depth);
  Target<Scalar> c(p.c, p.rows, p.columns, Eigen::OuterStride<>(p.c_step));
  if (p.b_transposed) {
    c.noalias() += a * View<Scalar>(p.b, p.columns, p.depth).transpose();
  } else {
    c.noalias() += a * View<Scalar>(p.b, p.depth, p.columns);
  }
}

}  // namespace

void multiply_block(const BlockProduct<float>& product) { multiply_add(product); }
void multiply_block(const BlockProduct<double>& product) { multiply_add(product); }

}  // namespace pw::PW_GEMM
