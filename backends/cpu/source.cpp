#include <fmt/format.h>

#include "backends/cpu/emitter.hpp"
#include "codegen/prelude.hpp"

namespace pw::cpu {
namespace {

// GCC 12 threads jumps between comparisons with constants and then loses one of the paths where it
// turns them into vectors: of i8(minimum(maximum(x, 5), 2)) it made 127.
constexpr std::string_view kPrologue = R"text(
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-thread-jumps")
#endif
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
)text";

// Text after the prelude: the fixed tree over a row in memory, the sums of a lane, and the
// combination of lanes; the combination in registers for a number of lanes known to the compiler;
// neighbours as one word; columns in memory as rows.
constexpr std::string_view kRows = R"text(
template <class T, class F>
static T pw_folded(T* lane, long long lanes) {
  for (long long far = lanes / 2; far > 0; far /= 2)
    for (long long i = 0; i < far; ++i) lane[i] = F::of(lane[i], lane[i + far]);
  return lane[0];
}
template <class T, class F>
static T pw_reduced(const T* x, long long width) {
  const long long lanes = pw_lanes(width);
  T lane[256];
  for (long long q = 0; q < lanes; ++q) {
    T a = F::start();
    for (long long c = q * 8; c < width; c += lanes * 8) {
      const long long e = c + 8 < width ? c + 8 : width;
      for (long long i = c; i < e; ++i) a = F::of(a, x[i]);
    }
    lane[q] = a;
  }
  return pw_folded<T, F>(lane, lanes);
}
template <class T>
struct pw_most {  // of magnitudes: their order is that of their bits
  static inline T of(T a, T b) {
    const int x = (int)pw_bits(a), y = (int)pw_bits(b);
    return pw_float((unsigned)(x > y ? x : y));
  }
};
static inline float pw_reciprocal(float x) {  // no infinity but that of 0: 0 / x is 0
  const float y = 1.0f / x, most = pw_float(0x7f7fffffu);
  return x == 0 || !(y > most || y < -most) ? y : y > 0 ? most : -most;
}
static inline unsigned pw_above_bf16(float x) {  // its bits, and below them what means nothing
  const unsigned u = pw_bits(x);
  return x != x ? u | 0x00400000u : u + 0x7fffu + ((u >> 16) & 1u);
}
static inline float pw_widened_f16(unsigned bits) {  // pw_from_f16, without lanes of 16 bits
  const unsigned u = bits & 0x7fffu, sign = bits >> 15;
  return u >= 0x7c00u ? pw_float(0x7f800000u | (u & 0x3ffu) << 13 | sign << 31)
                      : pw_widen<10, 15>(u, sign);
}
template <class Word>
static inline Word pw_word(const void* p) {
  Word word;
  __builtin_memcpy(&word, p, sizeof word);
  return word;
}
template <class Word>
static inline void pw_put_word(void* p, Word word) {
  __builtin_memcpy(p, &word, sizeof word);
}
template <class T, class F, int lanes>
static inline __attribute__((always_inline)) T pw_met(T* lane) {
  if constexpr (lanes > 1) {
#pragma omp simd
    for (int q = 0; q < lanes / 2; ++q) lane[q] = F::of(lane[q], lane[q + lanes / 2]);
    return pw_met<T, F, lanes / 2>(lane);
  }
  return lane[0];
}
template <class T>
static void pw_turn(T* to, long long width, const T* from, long long step, long long rows,
                    long long columns) {
  long long c = 0;
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
  constexpr int side = sizeof(T) < 4 ? 8 : 16 / sizeof(T);
  typedef T vector __attribute__((vector_size(side * sizeof(T))));
  for (; c + side <= columns; c += side) {
    long long r = 0;
    for (; r + side <= rows; r += side) {
      vector x[side], y[side];
      for (int i = 0; i < side; ++i)
        __builtin_memcpy(x + i, from + (c + i) * step + r, sizeof(vector));
#pragma GCC unroll 3
      for (int turn = 1; turn < side; turn *= 2) {
#pragma GCC unroll 4
        for (int i = 0; i < side / 2; ++i) {
          const vector a = x[i], b = x[i + side / 2];
          if constexpr (side == 8) {
            y[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
            y[2 * i + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
          } else if constexpr (side == 4) {
            y[2 * i] = __builtin_shufflevector(a, b, 0, 4, 1, 5);
            y[2 * i + 1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
          } else {
            y[0] = __builtin_shufflevector(a, b, 0, 2);
            y[1] = __builtin_shufflevector(a, b, 1, 3);
          }
        }
#pragma GCC unroll 8
        for (int i = 0; i < side; ++i) x[i] = y[i];
      }
      for (int i = 0; i < side; ++i)
        __builtin_memcpy(to + (r + i) * width + c, x + i, sizeof(vector));
    }
    for (; r < rows; ++r)
      for (int i = 0; i < side; ++i) to[r * width + c + i] = from[(c + i) * step + r];
  }
#endif
#endif
  for (; c < columns; ++c)
    for (long long r = 0; r < rows; ++r) to[r * width + c] = from[c * step + r];
}
)text";

}  // namespace

std::string source_file(std::string_view kernel) {
  return fmt::format("{}{}{}{}{}", kPrologue, cuda::host_names(), cuda::prelude(), kRows, kernel);
}

std::vector<std::string> compiler_flags(const EmitOptions& options, bool native) {
  std::vector<std::string> flags{
      "-std=c++17",      "-O3",      "-w", "-fopenmp-simd", "-fno-math-errno",
      "-fno-exceptions", "-fno-rtti"};
  // When vectorising, GCC 12 fuses a * b - c * d next to a * b + c * d in spite of
  // -ffp-contract=off.
  const std::vector<std::string> more =
      options.strict
          ? std::vector<std::string>{"-ffp-contract=off", "-fno-tree-vectorize"}
          : std::vector<std::string>{options.exact ? "-ffp-contract=off" : "-ffp-contract=fast",
                                     "-fno-trapping-math"};
  flags.insert(flags.end(), more.begin(), more.end());
  if (native) flags.emplace_back("-march=native");
#if defined(__x86_64__)
  if (native) flags.emplace_back("-mprefer-vector-width=512");
#endif
  return flags;
}

}  // namespace pw::cpu
