#include "bench/eigen.hpp"

#include <Eigen/Core>

namespace pw::bench {
namespace {

using In = Eigen::Map<const Eigen::ArrayXf>;
using Out = Eigen::Map<Eigen::ArrayXf>;
using Rows = Eigen::Map<const Eigen::Array<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

template <class F>
void each(const float* x, const float* z, float* y, std::int64_t rows, std::int64_t columns, F f) {
  Out(y, rows * columns) = f(In(x, rows * columns), In(z, rows * columns));
}

constexpr EigenOp kOps[] = {
    {"x + z", [](const float* x, const float* z, float* y, std::int64_t r,
                 std::int64_t c) { each(x, z, y, r, c, [](auto a, auto b) { return a + b; }); }},
    {"x * z", [](const float* x, const float* z, float* y, std::int64_t r,
                 std::int64_t c) { each(x, z, y, r, c, [](auto a, auto b) { return a * b; }); }},
    {"x / z", [](const float* x, const float* z, float* y, std::int64_t r,
                 std::int64_t c) { each(x, z, y, r, c, [](auto a, auto b) { return a / b; }); }},
    {"neg(x)", [](const float* x, const float* z, float* y, std::int64_t r,
                  std::int64_t c) { each(x, z, y, r, c, [](auto a, auto) { return -a; }); }},
    {"exp(x)", [](const float* x, const float* z, float* y, std::int64_t r,
                  std::int64_t c) { each(x, z, y, r, c, [](auto a, auto) { return a.exp(); }); }},
    {"tanh(x)", [](const float* x, const float* z, float* y, std::int64_t r,
                   std::int64_t c) { each(x, z, y, r, c, [](auto a, auto) { return a.tanh(); }); }},
    {"maximum(x, z)",
     [](const float* x, const float* z, float* y, std::int64_t r, std::int64_t c) {
       each(x, z, y, r, c, [](auto a, auto b) { return a.max(b); });
     }},
    {"sum(x)", [](const float* x, const float*, float* y, std::int64_t r,
                  std::int64_t c) { Out(y, r) = Rows(x, r, c).rowwise().sum(); }},
    {"amax(x)",
     [](const float* x, const float*, float* y, std::int64_t r, std::int64_t c) {
       for (std::int64_t i = 0; i < r; ++i) y[i] = In(x + i * c, c).maxCoeff<Eigen::PropagateNaN>();
     }},
};

}  // namespace

std::span<const EigenOp> eigen_ops() { return kOps; }

}  // namespace pw::bench
