// Exact fractions of 64-bit integers. An overflow is marked, and propagates to all results.
#pragma once

#include <cstdint>
#include <limits>
#include <numeric>

namespace pw {

class Fraction {
 public:
  constexpr Fraction() = default;
  constexpr explicit Fraction(std::int64_t value) : top_(value) {}

  [[nodiscard]] bool fits() const { return fits_; }
  [[nodiscard]] std::int64_t top() const { return top_; }
  [[nodiscard]] std::int64_t bottom() const { return bottom_; }
  [[nodiscard]] int sign() const { return top_ > 0 ? 1 : top_ < 0 ? -1 : 0; }

  friend Fraction operator*(Fraction a, Fraction b) {
    return reduced(Wide(a.top_) * b.top_, Wide(a.bottom_) * b.bottom_, a.fits_ && b.fits_);
  }
  friend Fraction operator/(Fraction a, Fraction b) {
    Fraction inverse;
    inverse.top_ = b.top_ < 0 ? -b.bottom_ : b.bottom_;
    inverse.bottom_ = b.top_ < 0 ? -b.top_ : b.top_;
    inverse.fits_ = b.fits_ && b.top_ != 0;
    return a * inverse;
  }
  friend Fraction operator-(Fraction a, Fraction b) {
    return reduced(Wide(a.top_) * b.bottom_ - Wide(b.top_) * a.bottom_, Wide(a.bottom_) * b.bottom_,
                   a.fits_ && b.fits_);
  }
  friend bool operator<(Fraction a, Fraction b) {
    return Wide(a.top_) * b.bottom_ < Wide(b.top_) * a.bottom_;
  }

 private:
  __extension__ using Wide = __int128;

  static Fraction reduced(Wide top, Wide bottom, bool fits) {
    Wide a = top < 0 ? -top : top, b = bottom;
    while (b != 0) {
      const Wide rest = a % b;
      a = b;
      b = rest;
    }
    constexpr Wide kMost = std::numeric_limits<std::int32_t>::max() * Wide(1 << 30);
    if (a != 0) top /= a, bottom /= a;
    Fraction out;
    out.fits_ = fits && top <= kMost && -top <= kMost && bottom > 0 && bottom <= kMost;
    if (!out.fits_) return out;
    out.top_ = static_cast<std::int64_t>(top);
    out.bottom_ = static_cast<std::int64_t>(bottom);
    return out;
  }

  std::int64_t top_ = 0, bottom_ = 1;
  bool fits_ = true;
};

}  // namespace pw
