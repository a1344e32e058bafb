// Closed intervals of numbers, for bounds of sums and products.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

namespace pw {

template <class Number>
struct Interval {
  std::optional<Number> low, high;  ///< absent: unbounded

  static Interval point(const Number& x) { return {x, x}; }

  [[nodiscard]] bool at_least(const Number& x) const { return low && *low >= x; }
  [[nodiscard]] bool above(const Number& x) const { return low && *low > x; }
  [[nodiscard]] bool at_most(const Number& x) const { return high && *high <= x; }
  [[nodiscard]] bool below(const Number& x) const { return high && *high < x; }
  [[nodiscard]] bool contains(const Interval& inner) const {
    return (!low || inner.at_least(*low)) && (!high || inner.at_most(*high));
  }
  /// Returns the largest absolute value.
  [[nodiscard]] std::optional<Number> magnitude() const {
    if (!low || !high) return std::nullopt;
    return std::max<Number>(-*low, *high);
  }

  friend Interval operator+(const Interval& a, const Interval& b) {
    Interval out;
    if (a.low && b.low) out.low = *a.low + *b.low;
    if (a.high && b.high) out.high = *a.high + *b.high;
    return out;
  }
  friend Interval operator*(const Interval& a, const Interval& b) {
    std::array<End, 4> ends = {product(a.lower(), b.lower()), product(a.lower(), b.upper()),
                               product(a.upper(), b.lower()), product(a.upper(), b.upper())};
    const auto [least, most] = std::minmax_element(ends.begin(), ends.end());
    return {least->number(), most->number()};
  }
  /// Returns the interval of powers; requires exponent ≥ 1.
  [[nodiscard]] Interval power(int exponent) const {
    Interval out = *this;
    for (int i = 1; i < exponent; ++i) out = out * *this;
    if (exponent % 2 == 0 && !out.at_least(0)) out.low = 0;
    return out;
  }
  /// Returns the interval of maxima.
  friend Interval greater(const Interval& a, const Interval& b) {
    return {!a.low  ? b.low
            : b.low ? std::max(a.low, b.low)
                    : a.low,
            a.high && b.high ? std::max(a.high, b.high) : std::nullopt};
  }
  /// Returns the interval of minima.
  friend Interval lesser(const Interval& a, const Interval& b) {
    return {a.low && b.low ? std::min(a.low, b.low) : std::nullopt, !a.high ? b.high
                                                                    : b.high
                                                                        ? std::min(a.high, b.high)
                                                                        : a.high};
  }

 private:
  /// An end; `infinite` is -1 or 1 for an infinity.
  struct End {
    int infinite = 0;
    Number finite = 0;
    [[nodiscard]] int sign() const {
      return infinite != 0 ? infinite : finite > 0 ? 1 : finite < 0 ? -1 : 0;
    }
    [[nodiscard]] std::optional<Number> number() const {
      return infinite == 0 ? std::optional(finite) : std::nullopt;
    }
    friend bool operator<(const End& a, const End& b) {
      return a.infinite != b.infinite ? a.infinite < b.infinite : a.finite < b.finite;
    }
  };
  [[nodiscard]] End lower() const { return low ? End{0, *low} : End{-1, 0}; }
  [[nodiscard]] End upper() const { return high ? End{0, *high} : End{1, 0}; }
  static End product(const End& a, const End& b) {
    const int sign = a.sign() * b.sign();
    if (sign == 0) return {};
    if (a.infinite != 0 || b.infinite != 0) return {sign, 0};
    return {0, a.finite * b.finite};
  }
};

}  // namespace pw
