// The scalar meaning of each pointwise primitive, as the interpreter computes it; T is float,
// double, or int64 for integers and b8. eager uses it for integers only, and Eigen for the rest.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "backends/single.hpp"

namespace pw::scalar {

template <class T>
constexpr bool kIntegral = std::is_integral_v<T>;

/// Integers wrap around: computed as unsigned.
template <class T>
using Wrapping = std::conditional_t<kIntegral<T>, std::uint64_t, T>;
struct Add {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
};
struct Sub {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b));
  }
};
struct Mul {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
  }
};
/// Integers truncate; by zero they give zero.
struct Div {
  template <class T>
  static T of(T a, T b) {
    if constexpr (kIntegral<T>) {
      if (b == 0) return 0;
      return b == -1 ? Sub::of<T>(0, a) : a / b;
    } else {
      return a / b;
    }
  }
};
struct Pow {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_same_v<T, double>)
      return b == 2 ? a * a : std::pow(a, b);
    else
      return single::pow(a, b);
  }
};
struct Maximum {
  template <class T>
  static T of(T a, T b) {
    return a != a || a > b ? a : b;
  }
};
struct Minimum {
  template <class T>
  static T of(T a, T b) {
    return a != a || a < b ? a : b;
  }
};
struct Eq {
  template <class T>
  static T of(T a, T b) {
    return a == b;
  }
};
struct Ne {
  template <class T>
  static T of(T a, T b) {
    return a != b;
  }
};
struct Lt {
  template <class T>
  static T of(T a, T b) {
    return a < b;
  }
};
struct Le {
  template <class T>
  static T of(T a, T b) {
    return a <= b;
  }
};
struct Gt {
  template <class T>
  static T of(T a, T b) {
    return a > b;
  }
};
struct Ge {
  template <class T>
  static T of(T a, T b) {
    return a >= b;
  }
};
struct And {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<std::int64_t>(a) & static_cast<std::int64_t>(b));
  }
};
struct Or {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<std::int64_t>(a) | static_cast<std::int64_t>(b));
  }
};
struct Neg {
  template <class T>
  static T of(T a) {
    if constexpr (kIntegral<T>)
      return Sub::of<T>(0, a);
    else
      return -a;
  }
};
struct Abs {
  template <class T>
  static T of(T a) {
    if constexpr (kIntegral<T>)
      return a < 0 ? Neg::of<T>(a) : a;
    else
      return std::abs(a);
  }
};
struct Not {
  template <class T>
  static T of(T a) {
    return static_cast<T>(~static_cast<std::int64_t>(a));
  }
};
struct Sqrt {
  template <class T>
  static T of(T a) {
    return static_cast<T>(std::sqrt(a));
  }
};
struct Rsqrt {
  template <class T>
  static T of(T a) {
    return static_cast<T>(1 / std::sqrt(a));
  }
};
struct Exp {
  template <class T>
  static T of(T a) {
    if constexpr (std::is_same_v<T, float>) return single::exp(a);
    return static_cast<T>(std::exp(a));
  }
};
struct Log {
  template <class T>
  static T of(T a) {
    if constexpr (std::is_same_v<T, float>) return single::log(a);
    return static_cast<T>(std::log(a));
  }
};
struct Tanh {
  template <class T>
  static T of(T a) {
    if constexpr (std::is_same_v<T, float>) return single::tanh(a);
    return static_cast<T>(std::tanh(a));
  }
};
struct Sin {
  template <class T>
  static T of(T a) {
    if constexpr (std::is_same_v<T, float>) return single::sin(a);
    return static_cast<T>(std::sin(a));
  }
};
struct Cos {
  template <class T>
  static T of(T a) {
    if constexpr (std::is_same_v<T, float>) return single::cos(a);
    return static_cast<T>(std::cos(a));
  }
};
struct Flip {
  template <class T>
  static T of(T a) {
    return a == 0;
  }
};
struct Same {
  template <class T>
  static T of(T a) {
    return a;
  }
};

}  // namespace pw::scalar
