// Numbers outside the inline range are computed by Boost. Invariant: a number that fits is stored
// inline, so that a value has one representation.
#include "algebra/rational.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include <boost/multiprecision/cpp_int.hpp>

namespace pw {
namespace {

namespace mp = boost::multiprecision;
using Integer = mp::number<mp::cpp_int_backend<>, mp::et_off>;
using Number = mp::number<mp::cpp_rational_backend, mp::et_off>;
__extension__ using Wide = __int128;

constexpr std::int64_t kMost = INT64_MAX;

Wide common_divisor(Wide a, Wide b) {
  if (a < 0) a = -a;
  while (b != 0) a = std::exchange(b, a % b);
  return a;
}

std::size_t width(const Integer& x) { return x == 0 ? 0 : msb(x < 0 ? Integer(-x) : x) + 1; }

}  // namespace

struct Rational::Big {
  Number number;
};

Rational Rational::widened(std::int64_t value) { return stored({Number(value)}); }

Rational Rational::of(double value) {
  constexpr double kExact = 0x1p53;
  if (std::rint(value) == value && std::abs(value) <= kExact)
    return {static_cast<std::int64_t>(value), 1};
  return stored({Number(value)});
}

/// Stores a number inline if it fits.
Rational Rational::stored(Big value) {
  const Integer top = numerator(value.number), bottom = denominator(value.number);
  Rational out;
  if (top <= kMost && top >= -kMost && bottom <= kMost) {
    out.numerator_ = static_cast<std::int64_t>(top);
    out.denominator_ = static_cast<std::int64_t>(bottom);
    return out;
  }
  out.numerator_ = out.denominator_ = 0;
  out.big_ = std::make_shared<const Big>(std::move(value));
  return out;
}

Rational::Big Rational::big() const {
  if (big_) return *big_;
  return {Number(Integer(numerator_), Integer(denominator_))};
}

int Rational::sign() const {
  if (big_) return big_->number < 0 ? -1 : 1;
  return numerator_ > 0 ? 1 : numerator_ < 0 ? -1 : 0;
}

bool Rational::is_integer() const { return big_ ? denominator(big_->number) == 1 : whole(); }

std::optional<std::int64_t> Rational::integer() const {
  if (whole()) return numerator_;
  if (big_ && big_->number == Number(kLeast)) return kLeast;
  return std::nullopt;
}

Rational Rational::floor() const {
  if (is_integer()) return *this;
  const Number number = big().number;
  const Number truncated(Integer(numerator(number) / denominator(number)));
  return stored({number < 0 ? Number(truncated - 1) : truncated});
}

std::int64_t Rational::signed_residue(int bits) const {
  std::uint64_t low = static_cast<std::uint64_t>(numerator_);
  if (big_) {
    Integer rest = numerator(big_->number) % (Integer(1) << 64);
    if (rest < 0) rest += Integer(1) << 64;
    low = static_cast<std::uint64_t>(rest);
  }
  const int unused = 64 - bits;
  return static_cast<std::int64_t>(low << unused) >> unused;
}

double Rational::approximate() const {
  if (whole()) return static_cast<double>(numerator_);
  return static_cast<double>(big().number);
}

std::size_t Rational::bits() const {
  if (big_) return std::max(width(numerator(big_->number)), width(denominator(big_->number)));
  const auto size = static_cast<std::uint64_t>(numerator_ < 0 ? -numerator_ : numerator_);
  return static_cast<std::size_t>(
      std::max(std::bit_width(size), std::bit_width(static_cast<std::uint64_t>(denominator_))));
}

std::string Rational::print() const { return big().number.str(); }

std::optional<Rational::Pair> Rational::pair() const {
  if (big_) return std::nullopt;
  return Pair{numerator_, denominator_};
}

Rational Rational::operator-() const {
  if (big_) return stored({Number(-big_->number)});
  return {-numerator_, denominator_};
}

Rational Rational::inverse() const {
  if (big_) return stored({Number(1 / big_->number)});
  return numerator_ < 0 ? Rational(-denominator_, -numerator_) : Rational(denominator_, numerator_);
}

Rational Rational::sum_of(const Rational& a, const Rational& b) {
  if (!a.big_ && !b.big_) {
    const Wide top = Wide(a.numerator_) * b.denominator_ + Wide(b.numerator_) * a.denominator_;
    const Wide bottom = Wide(a.denominator_) * b.denominator_, by = common_divisor(top, bottom);
    if (top / by <= kMost && top / by >= -kMost && bottom / by <= kMost)
      return {static_cast<std::int64_t>(top / by), static_cast<std::int64_t>(bottom / by)};
  }
  return stored({Number(a.big().number + b.big().number)});
}

Rational Rational::product_of(const Rational& a, const Rational& b) {
  if (!a.big_ && !b.big_) {
    const Wide top = Wide(a.numerator_) * b.numerator_;
    const Wide bottom = Wide(a.denominator_) * b.denominator_, by = common_divisor(top, bottom);
    if (top / by <= kMost && top / by >= -kMost && bottom / by <= kMost)
      return {static_cast<std::int64_t>(top / by), static_cast<std::int64_t>(bottom / by)};
  }
  return stored({Number(a.big().number * b.big().number)});
}

std::strong_ordering Rational::order(const Rational& a, const Rational& b) {
  if (!a.big_ && !b.big_)
    return Wide(a.numerator_) * b.denominator_ <=> Wide(b.numerator_) * a.denominator_;
  return a.big().number.compare(b.big().number) <=> 0;
}

}  // namespace pw
