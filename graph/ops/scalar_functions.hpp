// Scalar definitions of the primitives that compute. The interpreter, eager and row programs derive
// their tables from the rows of graph/ops/primitive.hpp; generated code calls the function pw_NAME
// of tensor/prelude.cu. `sub` is written once below, and `pw_sub` once there.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "graph/ops/primitive.hpp"

/// Functions that no library provides: those of the prelude, from the same text that generated
/// kernels use. Compiled into this program without contraction of products and sums.
namespace pw::single {

#define PW_DECLARED(name) [[nodiscard]] float name(float x);
PW_REAL_PRIMITIVES(PW_DECLARED)
#undef PW_DECLARED
[[nodiscard]] float pow(float x, float y);
[[nodiscard]] std::int64_t pow(std::int64_t x, std::int64_t y);  ///< wraps around

}  // namespace pw::single

/// Scalar definitions of the interpreter; T is float, double, or int64 for integers and b8.
namespace pw::scalar {

template <class T>
constexpr bool kIntegral = std::is_integral_v<T>;

// NOLINTBEGIN(readability-identifier-naming): the names of the table.

/// Wraps integers around: computes them as unsigned.
template <class T>
using Wrapping = std::conditional_t<kIntegral<T>, std::uint64_t, T>;
struct add {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
};
struct sub {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b));
  }
};
struct mul {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
  }
};
/// Truncating division of integers; division by zero gives zero.
struct div {
  template <class T>
  static T of(T a, T b) {
    if constexpr (kIntegral<T>) {
      if (b == 0) return 0;
      return b == -1 ? sub::of<T>(0, a) : a / b;
    } else {
      return a / b;
    }
  }
};
struct pow {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_same_v<T, double>)
      return b == 2 ? a * a : std::pow(a, b);
    else
      return single::pow(a, b);
  }
};
/// Remainder of a truncating division; for integers, division by zero gives zero.
struct fmod {
  template <class T>
  static T of(T a, T b) {
    if constexpr (kIntegral<T>)
      return b == 0 || b == -1 ? 0 : a % b;
    else
      return std::fmod(a, b);
  }
};
/// Remainder of a division that rounds down.
struct remainder {
  template <class T>
  static T of(T a, T b) {
    const T rest = fmod::of<T>(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
};
/// Arctangent computed in double precision, and rounded.
struct atan2 {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(std::atan2(static_cast<double>(a), static_cast<double>(b)));
  }
};
struct maximum {
  template <class T>
  static T of(T a, T b) {
    return a != a || a > b ? a : b;
  }
};
struct minimum {
  template <class T>
  static T of(T a, T b) {
    return a != a || a < b ? a : b;
  }
};
struct eq {
  template <class T>
  static T of(T a, T b) {
    return a == b;
  }
};
struct ne {
  template <class T>
  static T of(T a, T b) {
    return a != b;
  }
};
struct lt {
  template <class T>
  static T of(T a, T b) {
    return a < b;
  }
};
struct le {
  template <class T>
  static T of(T a, T b) {
    return a <= b;
  }
};
struct gt {
  template <class T>
  static T of(T a, T b) {
    return a > b;
  }
};
struct ge {
  template <class T>
  static T of(T a, T b) {
    return a >= b;
  }
};
struct select {
  template <class T>
  static T of(T mask, T a, T b) {
    return mask != 0 ? a : b;
  }
};
struct neg {
  template <class T>
  static T of(T a) {
    if constexpr (kIntegral<T>)
      return sub::of<T>(0, a);
    else
      return -a;
  }
};
struct abs {
  template <class T>
  static T of(T a) {
    if constexpr (kIntegral<T>)
      return a < 0 ? neg::of<T>(a) : a;
    else
      return std::abs(a);
  }
};

// Integers stay unchanged; round goes to the even one of two equally near integers.
#define PW_ROUNDING(name, function) \
  struct name {                     \
    template <class T>              \
    static T of(T a) {              \
      if constexpr (kIntegral<T>)   \
        return a;                   \
      else                          \
        return std::function(a);    \
    }                               \
  };
PW_ROUNDING(floor, floor)
PW_ROUNDING(ceil, ceil)
PW_ROUNDING(trunc, trunc)
PW_ROUNDING(round, rint)
#undef PW_ROUNDING

struct bitwise_and {
  static std::int64_t of(std::int64_t a, std::int64_t b) { return a & b; }
};
struct bitwise_xor {
  static std::int64_t of(std::int64_t a, std::int64_t b) { return a ^ b; }
};
struct bitwise_or {
  static std::int64_t of(std::int64_t a, std::int64_t b) { return a | b; }
};
/// Shift by a count. A count below 0 or above 63 shifts out all bits: the result is zero, or the
/// sign. A narrower dtype keeps its own bits of the result, so its own shift is exact up to its
/// width.
struct shift_left {
  static std::int64_t of(std::int64_t a, std::int64_t b) {
    return b < 0 || b > 63 ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << b);
  }
};
struct shift_right {
  static std::int64_t of(std::int64_t a, std::int64_t b) { return a >> (b < 0 || b > 63 ? 63 : b); }
};
struct bitwise_not {
  static std::int64_t of(std::int64_t a) { return ~a; }
};

#define PW_OF_LIBM(name)                                 \
  struct name {                                          \
    static float of(float a) { return single::name(a); } \
    static double of(double a) { return std::name(a); }  \
  };
PW_LIBM_PRIMITIVES(PW_OF_LIBM)
#undef PW_OF_LIBM
struct rsqrt {
  static float of(float a) { return single::rsqrt(a); }
  static double of(double a) { return 1 / std::sqrt(a); }
};
// NOLINTEND(readability-identifier-naming)

/// Integer primitive on b8: keeps the lowest bit of the result.
template <class F>
struct Truth {
  static std::int64_t of(auto... a) { return F::of(a...) & 1; }
};
struct Same {
  template <class T>
  static T of(T a) {
    return a;
  }
};

}  // namespace pw::scalar
