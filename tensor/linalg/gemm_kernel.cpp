// The register-blocked inner kernel of gemm.cpp. This file is compiled several times; PW_GEMM names
// the variant. A tile's sums stay in registers: two vectors a row, and as many rows as there are
// registers for. Invariant: an element starts from 0 and adds its products in ascending depth with
// one fused multiply-add each, so every variant adds in the same order.
#include "tensor/linalg/gemm_kernel.hpp"

#include <array>
#include <utility>

namespace pw::PW_GEMM {
namespace {

#if defined(__AVX512F__)
constexpr std::int64_t kBytes = 64, kRows = 14;
#elif defined(__AVX2__)
constexpr std::int64_t kBytes = 32, kRows = 6;
#else
constexpr std::int64_t kBytes = 16, kRows = 6;
#endif

template <class Scalar>
constexpr std::int64_t kLanes = kBytes / static_cast<std::int64_t>(sizeof(Scalar));

template <class Scalar>
struct Vectors {
  typedef Scalar Whole __attribute__((vector_size(kBytes)));
  typedef Scalar Loose __attribute__((vector_size(kBytes), aligned(sizeof(Scalar))));

  static Whole load(const Scalar* p) { return *reinterpret_cast<const Loose*>(p); }
  static void store(Scalar* p, Whole v) { *reinterpret_cast<Loose*>(p) = v; }
};

template <class Scalar, std::int64_t rows>
void multiply(const BlockTile<Scalar>& t) {
  using V = Vectors<Scalar>;
  constexpr std::int64_t lanes = kLanes<Scalar>;
  typename V::Whole sums[rows][2] = {};
  const Scalar *a = t.a, *b = t.b;
  for (std::int64_t k = t.depth; k > 0; --k, a += rows, b += 2 * lanes) {
    const auto first = V::load(b), second = V::load(b + lanes);
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < rows; ++r) {
      sums[r][0] += a[r] * first;
      sums[r][1] += a[r] * second;
    }
  }
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < rows; ++r) {
    Scalar* const c = t.c + r * t.c_step;
    V::store(c, t.add ? V::load(c) + sums[r][0] : sums[r][0]);
    V::store(c + lanes, t.add ? V::load(c + lanes) + sums[r][1] : sums[r][1]);
  }
}

template <class Scalar, std::size_t... i>
constexpr auto by_rows(std::index_sequence<i...>) {
  return std::array{multiply<Scalar, static_cast<std::int64_t>(i) + 1>...};
}

template <class Scalar>
void run_tile(std::int64_t rows, const BlockTile<Scalar>& tile) {
  static constexpr auto kMultiply = by_rows<Scalar>(std::make_index_sequence<kRows>());
  kMultiply[static_cast<std::size_t>(rows - 1)](tile);
}

void turn_four(const float* from, std::int64_t step, float* to, std::int64_t to_step) {
  typedef float Four __attribute__((vector_size(16), aligned(4)));
  const auto row = [&](std::int64_t i) { return *reinterpret_cast<const Four*>(from + i * step); };
  const auto put = [&](std::int64_t i, Four v) { *reinterpret_cast<Four*>(to + i * to_step) = v; };
  const Four a = row(0), b = row(1), c = row(2), d = row(3);
  const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
             cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
             ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7),
             cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  put(0, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
  put(1, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
  put(2, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  put(3, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

template <class Scalar>
void turn(const Scalar* from, std::int64_t step, std::int64_t depth, Scalar* to) {
  constexpr std::int64_t columns = 2 * kLanes<Scalar>;
  static_assert(columns % kTurned == 0);
  std::int64_t k = 0;
  if constexpr (sizeof(Scalar) == 4) {
    for (; k + 4 <= depth; k += 4) turn_four(from + k, step, to + k * columns, columns);
  }
  for (; k < depth; ++k)
    for (std::int64_t j = 0; j < kTurned; ++j) to[k * columns + j] = from[j * step + k];
}

template <class Scalar>
void spread(const Scalar* from, std::int64_t panels, std::int64_t step, Scalar* to) {
  using V = Vectors<Scalar>;
  constexpr std::int64_t lanes = kLanes<Scalar>;
  for (; panels > 0; --panels, from += 2 * lanes, to += step) {
    V::store(to, V::load(from));
    V::store(to + lanes, V::load(from + lanes));
  }
}

template <class Scalar>
BlockKernel<Scalar> block_kernel() {
  return {kRows, 2 * kLanes<Scalar>, run_tile<Scalar>, turn<Scalar>, spread<Scalar>};
}

}  // namespace

BlockKernel<float> block_kernel_f32() { return block_kernel<float>(); }
BlockKernel<double> block_kernel_f64() { return block_kernel<double>(); }

}  // namespace pw::PW_GEMM
