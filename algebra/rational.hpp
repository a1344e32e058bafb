// Exact rational numbers of any size, in lowest terms. Numerators and denominators of up to 63 bits
// are stored inline, and larger ones on the heap (Boost.Multiprecision). Costs grow with `bits()`,
// so loops that may not end bound it.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>

namespace pw {

class Rational {
 public:
  Rational() = default;
  template <std::signed_integral Integer>
  Rational(Integer value)  // NOLINT(google-explicit-constructor): an integer is a rational
      : numerator_(value) {
    if (numerator_ == kLeast) *this = widened(value);
  }
  /// Converts a finite number; every one is an integer times a power of two.
  static Rational of(double value);

  [[nodiscard]] int sign() const;
  [[nodiscard]] bool is_integer() const;
  /// Returns the integer that it is, if 64 bits hold that.
  [[nodiscard]] std::optional<std::int64_t> integer() const;
  [[nodiscard]] Rational floor() const;
  /// Returns the residue modulo 2^bits between -2^(bits-1) and 2^(bits-1) - 1; requires an integer.
  [[nodiscard]] std::int64_t signed_residue(int bits) const;
  /// Returns the nearest number.
  [[nodiscard]] double approximate() const;
  /// Returns the width of the numerator or of the denominator, whichever is wider.
  [[nodiscard]] std::size_t bits() const;
  [[nodiscard]] std::string print() const;
  /// Numerator and denominator, if each has at most 63 bits.
  struct Pair {
    std::int64_t numerator, denominator;
  };
  [[nodiscard]] std::optional<Pair> pair() const;

  Rational operator-() const;
  friend Rational operator+(const Rational& a, const Rational& b) {
    if (std::int64_t sum = 0; a.whole() && b.whole() &&
                              !__builtin_add_overflow(a.numerator_, b.numerator_, &sum) &&
                              sum != kLeast)
      return {sum, 1};
    return sum_of(a, b);
  }
  friend Rational operator-(const Rational& a, const Rational& b) { return a + -b; }
  friend Rational operator*(const Rational& a, const Rational& b) {
    if (std::int64_t product = 0; a.whole() && b.whole() &&
                                  !__builtin_mul_overflow(a.numerator_, b.numerator_, &product) &&
                                  product != kLeast)
      return {product, 1};
    return product_of(a, b);
  }
  /// Requires b ≠ 0.
  friend Rational operator/(const Rational& a, const Rational& b) { return a * b.inverse(); }
  Rational& operator+=(const Rational& b) { return *this = *this + b; }
  Rational& operator*=(const Rational& b) { return *this = *this * b; }
  friend bool operator==(const Rational& a, const Rational& b) {
    return (a <=> b) == std::strong_ordering::equal;
  }
  friend std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
    if (a.whole() && b.whole()) return a.numerator_ <=> b.numerator_;
    return order(a, b);
  }

 private:
  struct Big;
  static constexpr std::int64_t kLeast = INT64_MIN;  ///< has no negation, so it is not inline

  Rational(std::int64_t numerator, std::int64_t denominator)
      : numerator_(numerator), denominator_(denominator) {}
  static Rational stored(Big value);
  static Rational widened(std::int64_t value);
  [[nodiscard]] Big big() const;
  [[nodiscard]] bool whole() const { return denominator_ == 1; }
  [[nodiscard]] Rational inverse() const;
  static Rational sum_of(const Rational& a, const Rational& b);
  static Rational product_of(const Rational& a, const Rational& b);
  static std::strong_ordering order(const Rational& a, const Rational& b);

  std::int64_t numerator_ = 0, denominator_ = 1;  ///< 0 / 0 if `big_` holds the number
  std::shared_ptr<const Big> big_;                ///< null if both parts have at most 63 bits
};

[[nodiscard]] inline Rational abs(const Rational& x) { return x.sign() < 0 ? -x : x; }

}  // namespace pw
