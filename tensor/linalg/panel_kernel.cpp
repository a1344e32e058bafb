// The inner kernels of panels.cpp and tiled attention. This file is compiled several times; PW_GEMM
// names the variant, as for gemm_kernel.cpp. A tile's sums stay in registers: two vectors a row,
// and as many rows as there are registers for (Goto and van de Geijn 2008,
// doi:10.1145/1356052.1356053).
#include "tensor/linalg/panel_kernel.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace pw::PW_GEMM {
namespace {

#include "tensor/host_prelude.inc"

#if defined(__AVX512F__)
constexpr std::int64_t kLanes = 16, kRows = 14;
#elif defined(__AVX2__)
constexpr std::int64_t kLanes = 8, kRows = 6;
#else
constexpr std::int64_t kLanes = 4, kRows = 6;
#endif
constexpr std::int64_t kColumns = 2 * kLanes;
constexpr std::int64_t kAhead = 16 * kColumns;  // elements of b that are prefetched

typedef float Vector __attribute__((vector_size(kLanes * 4)));
typedef float Loose __attribute__((vector_size(kLanes * 4), aligned(4)));

Vector load(const float* p) { return *reinterpret_cast<const Loose*>(p); }
void store(float* p, Vector v) { *reinterpret_cast<Loose*>(p) = v; }

template <std::int64_t rows>
void prefetch_results(const PanelTile& t) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < 2; ++i) {
      __builtin_prefetch(t.c + r * t.step + i * t.half, 1);
      if (t.other != nullptr) __builtin_prefetch(t.other + r * t.other_step + i * kLanes);
    }
  }
}

template <std::int64_t rows>
void multiply(const PanelTile& t) {
  Vector sums[rows][2];
  const float *a = t.a, *b = t.b;
  // With short sums, the operands of the epilogue are prefetched during the sum.
  constexpr std::int64_t kShort = 16;
  if (t.groups <= kShort) prefetch_results<rows>(t);
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < rows; ++r) {
    sums[r][0] = t.start == nullptr ? Vector{} : load(t.start);
    sums[r][1] = t.start == nullptr ? Vector{} : load(t.start + kLanes);
  }
  for (std::int64_t group = t.groups; group > 0; --group, a += rows * kPanelGroup) {
    for (std::int64_t k = 0; k < kPanelGroup; ++k, b += kColumns) {
      const Vector first = load(b), second = load(b + kLanes);
      __builtin_prefetch(b + kAhead);
      if constexpr (kLanes == 16) __builtin_prefetch(b + kAhead + kLanes);
#pragma GCC unroll 16
      for (std::int64_t r = 0; r < rows; ++r) {
        const float x = a[r * kPanelGroup + k];
        sums[r][0] += x * first;
        sums[r][1] += x * second;
      }
    }
  }
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (std::int64_t i = 0; i < 2; ++i) {
      float* const c = t.c + r * t.step + i * t.half;
      Vector sum = sums[r][i];
      if (t.add) sum += load(c);
      if (t.other != nullptr) sum += load(t.other + r * t.other_step + i * kLanes);
      if (t.relu) sum = sum < Vector{} ? Vector{} : sum;  // NaN stays NaN
      store(c, sum);
    }
  }
}

using Multiply = void (*)(const PanelTile&);
template <std::size_t... i>
constexpr std::array<Multiply, sizeof...(i)> by_rows(std::index_sequence<i...>) {
  return {multiply<static_cast<std::int64_t>(i) + 1>...};
}

void run_tile(std::int64_t rows, const PanelTile& tile) {
  static constexpr auto kMultiply = by_rows(std::make_index_sequence<kRows>());
  kMultiply[static_cast<std::size_t>(rows - 1)](tile);
}

typedef int Integers __attribute__((vector_size(kLanes * 4)));

/// Returns exp of values of at most 0, by the prelude's polynomial; below -87 it is 0.
Vector exp_of(Vector x) {
  constexpr float kLeast = -87.0f, kShift = 12582912.0f;  // its low bits hold an integer
  const Vector bounded = x < kLeast ? Vector{} + kLeast : x;
  const Vector shifted = bounded * 1.44269504f + kShift, n = shifted - kShift;
  const Vector r = n * 2.12194440e-4f + (n * -0.693359375f + bounded);
  Vector y = r * 1.9875691500e-4f + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * (r * r) + r + 1.0f;
  const Integers power = (std::bit_cast<Integers>(shifted) - 0x4b400000 + 127) << 23;
  y *= std::bit_cast<Vector>(power);
  return x < kLeast ? Vector{} : y;
}

float largest_of(Vector v) {
  float out = v[0];
  for (std::int64_t i = 1; i < kLanes; ++i) out = v[i] > out ? v[i] : out;
  return out;
}
float sum_of(Vector v) {
  float out = 0;
  for (std::int64_t i = 0; i < kLanes; ++i) out += v[i];
  return out;
}

void weigh(const ScoreTile& t) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  constexpr std::int64_t kVectors = kPanelGroup / kLanes;
  const std::int64_t step = t.rows * kPanelGroup;
  for (std::int64_t r = 0; r < t.rows; ++r) {
    float* const scores = t.scores + r * kPanelGroup;
    Vector most = Vector{} + kNever;
    for (std::int64_t g = 0; g < t.groups; ++g)
      for (std::int64_t i = 0; i < kVectors; ++i) {
        const Vector score = load(scores + g * step + i * kLanes);
        most = score > most ? score : most;
      }
    const float here = largest_of(most), before = t.largest[r],
                largest = here > before ? here : before;
    const float from = largest == kNever ? 0.0f : largest;  // no visible key: exp(-inf) is 0
    Vector sums{};
    for (std::int64_t g = 0; g < t.groups; ++g)
      for (std::int64_t i = 0; i < kVectors; ++i) {
        float* const at = scores + g * step + i * kLanes;
        const Vector weight = exp_of(load(at) - from);
        store(at, weight);
        sums += weight;
      }
    t.factor[r] = pw_exp(before - from);
    t.total[r] = t.total[r] * t.factor[r] + sum_of(sums);
    t.largest[r] = largest;
  }
}

Vector abs_of(Vector x) { return x < Vector{} ? -x : x; }

/// Computes the body of op gelu (rules/ops/activation.pwr).
Vector gelu_of(Vector h) {
  const Vector z = abs_of(h) * 0.7071067811865476f, t = 1.0f / (z * 0.55f + 1.0f), u = z * z;
  Vector p = t * -0.297397098f + 0.976238151f;
  p = t * p - 1.04890436f;
  p = t * p + 0.252950668f;
  p = t * p - 0.0784424921f;
  p = t * p + 0.366569016f;
  p = t * p + 0.99840409f;
  p = t * p - 1.17014166f;
  const Vector tail = 0.5f * t * exp_of(p - u);
  Vector q = u * 0.00146891479f - 0.00931873719f;
  q = u * q + 0.039858538f;
  q = u * q - 0.132978263f;
  q = u * q + 0.398942252f;
  const Vector far = h < Vector{} ? tail : 1.0f - tail;
  return h * (z < 0.75f ? h * q + 0.5f : far);
}

void gelu(float* x, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(x + i, gelu_of(load(x + i)));
  if (i == n) return;
  float rest[kLanes] = {};
  std::copy_n(x + i, n - i, rest);
  store(rest, gelu_of(load(rest)));
  std::copy_n(rest, n - i, x + i);
}

}  // namespace

PanelKernels panel_kernels() { return {kRows, kColumns, run_tile, weigh, gelu}; }

}  // namespace pw::PW_GEMM
