// Conversions, against an independent search over all representable values of a format.
#include "tensor/numerics.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/hash.hpp"
#include "tests/catch.hpp"

namespace {

using namespace pw;

struct Number {
  double value;
  std::uint32_t bits;
};

/// Value of a pattern from its fields, by the definition of the format.
double decode(std::uint32_t bits, int exponent_bits, int mantissa_bits, int bias) {
  const std::uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  return exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
}

struct Format {
  DType dtype;
  int exponent, mantissa, bias;
  std::uint32_t largest;   ///< pattern of the largest finite value
  std::uint32_t overflow;  ///< what larger values become
  std::uint32_t infinity;  ///< what infinity becomes
};
const Format kFormats[] = {
    {DType::f8e4m3, 4, 3, 7, 0x7e, 0x7e, 0x7e},
    {DType::f8e5m2, 5, 2, 15, 0x7b, 0x7b, 0x7c},
    {DType::f16, 5, 10, 15, 0x7bff, 0x7c00, 0x7c00},
    {DType::bf16, 8, 7, 127, 0x7f7f, 0x7f80, 0x7f80},
};

std::vector<Number> positives(const Format& format) {
  std::vector<Number> numbers;
  for (std::uint32_t bits = 0; bits <= format.largest; ++bits) {
    numbers.push_back({decode(bits, format.exponent, format.mantissa, format.bias), bits});
  }
  return numbers;
}

/// Nearest pattern by bisection; on a tie the even one.
std::uint32_t nearest(const std::vector<Number>& numbers, const Format& format, double magnitude) {
  auto above = std::lower_bound(numbers.begin(), numbers.end(), magnitude,
                                [](const Number& n, double x) { return n.value < x; });
  if (above == numbers.end()) {
    const double step = numbers.back().value - numbers[numbers.size() - 2].value;
    const bool rounds_down = magnitude < numbers.back().value + step / 2;
    return rounds_down ? format.largest : format.overflow;
  }
  if (above == numbers.begin()) return above->bits;
  auto below = above - 1;
  const double up = above->value - magnitude, down = magnitude - below->value;
  if (up == down) return above->bits % 2 == 0 ? above->bits : below->bits;
  return up < down ? above->bits : below->bits;
}

std::uint32_t encode(DType dtype, double value) {
  std::byte bytes[8] = {};
  store(dtype, bytes, 0, value);
  std::uint32_t bits = 0;
  for (int i = size_of(dtype) - 1; i >= 0; --i)
    bits = bits << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return bits;
}
std::uint32_t encode_f32(DType dtype, float value) {
  if (dtype == DType::f8e4m3) return to_f8e4m3(value);
  if (dtype == DType::f8e5m2) return to_f8e5m2(value);
  return dtype == DType::f16 ? to_f16(value) : to_bf16(value);
}
double decode_with(DType dtype, std::uint32_t bits) {
  std::byte bytes[2] = {std::byte(bits & 0xff), std::byte(bits >> 8)};
  return load(dtype, bytes, 0);
}
std::uint32_t sign_bit(const Format& format) { return 1u << (format.exponent + format.mantissa); }

/// Checks one magnitude in both signs, from double, and from float where it is one; returns the
/// number of failures.
int check(const Format& format, const std::vector<Number>& numbers, double magnitude) {
  const std::uint32_t expected = nearest(numbers, format, magnitude);
  int failures = 0;
  failures += encode(format.dtype, magnitude) != expected;
  failures += encode(format.dtype, -magnitude) != (expected | sign_bit(format));
  const float f = static_cast<float>(magnitude);
  if (static_cast<double>(f) == magnitude) {
    failures += encode_f32(format.dtype, f) != expected;
    failures += encode_f32(format.dtype, -f) != (expected | sign_bit(format));
  }
  return failures;
}

}  // namespace

TEST_CASE("numerics: every pattern decodes by the format's definition and encodes to itself",
          "[backends]") {
  for (const Format& format : kFormats) {
    int failures = 0;
    for (const Number& number : positives(format)) {
      failures += decode_with(format.dtype, number.bits) != number.value;
      failures += decode_with(format.dtype, number.bits | sign_bit(format)) != -number.value;
      failures += encode(format.dtype, number.value) != number.bits;
      failures += encode_f32(format.dtype, static_cast<float>(number.value)) != number.bits;
    }
    INFO(name(format.dtype));
    CHECK(failures == 0);
  }
}

TEST_CASE("numerics: every rounding boundary goes to the nearest, ties to even", "[backends]") {
  for (const Format& format : kFormats) {
    const std::vector<Number> numbers = positives(format);
    int failures = 0;
    for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
      const double middle = (numbers[i].value + numbers[i + 1].value) / 2;
      failures += check(format, numbers, middle);
      failures += check(format, numbers, std::nextafter(middle, 0));
      failures += check(format, numbers, std::nextafter(middle, INFINITY));
      failures += check(format, numbers, std::nextafter(static_cast<float>(middle), 0.0f));
      failures += check(format, numbers, std::nextafter(static_cast<float>(middle), INFINITY));
    }
    INFO(name(format.dtype));
    CHECK(failures == 0);
  }
}

TEST_CASE("numerics: random doubles and floats round as the search finds", "[backends]") {
  for (const Format& format : kFormats) {
    const std::vector<Number> numbers = positives(format);
    Random random(17);
    int failures = 0;
    for (int i = 0; i < 200000; ++i) {
      const double mantissa = 1 + random.uniform();
      const double wide = std::ldexp(mantissa, static_cast<int>(random.below(60)) - 40);
      failures += check(format, numbers, wide);
      failures += check(format, numbers, static_cast<float>(wide));
    }
    INFO(name(format.dtype) << ", seed 17");
    CHECK(failures == 0);
  }
}

TEST_CASE("numerics: overflow, infinity and NaN", "[backends]") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Format& format : kFormats) {
    const std::vector<Number> numbers = positives(format);
    const double largest = numbers.back().value;
    const double step = largest - numbers[numbers.size() - 2].value;
    INFO(name(format.dtype));
    for (double factor : {0.25, 0.5, 0.75, 1.0, 4.0})
      CHECK(check(format, numbers, largest + step * factor) == 0);
    CHECK(encode(format.dtype, infinity) == format.infinity);
    CHECK(encode(format.dtype, -infinity) == (format.infinity | sign_bit(format)));
    CHECK(encode(format.dtype, 1e300) == format.overflow);
    CHECK(std::isnan(decode_with(format.dtype, encode(format.dtype, std::nan("")))));
    CHECK(std::isnan(
        decode_with(format.dtype, encode_f32(format.dtype, std::bit_cast<float>(0x7f800001u)))));
    CHECK(encode(format.dtype, -0.0) == sign_bit(format));
  }
}

TEST_CASE("numerics: all NaN patterns of f16 and fp8 decode to NaN, infinities to infinity",
          "[backends]") {
  CHECK(from_f16(0x7c00) == std::numeric_limits<float>::infinity());
  CHECK(from_f8e5m2(0xfc) == -std::numeric_limits<float>::infinity());
  for (std::uint32_t bits = 0x7c01; bits < 0x8000; ++bits)
    REQUIRE(std::isnan(from_f16(static_cast<std::uint16_t>(bits))));
  for (std::uint8_t bits : {0x7d, 0x7e, 0x7f, 0xfd, 0xff}) CHECK(std::isnan(from_f8e5m2(bits)));
  CHECK(std::isnan(from_f8e4m3(0x7f)));
  CHECK(std::isnan(from_f8e4m3(0xff)));
}

TEST_CASE("numerics: f32 rounds once from double, integers truncate and saturate", "[backends]") {
  CHECK(rounded(DType::f32, 0.1) == static_cast<double>(0.1f));
  CHECK(rounded(DType::i32, 2.9) == 2);
  CHECK(rounded(DType::i32, -2.9) == -2);
  CHECK(rounded(DType::i8, 1000) == 127);
  CHECK(rounded(DType::u8, -3) == 0);
  CHECK(rounded(DType::i64, 1e30) == 9223372036854775807.0);
  CHECK(rounded(DType::i32, std::nan("")) == 0);
  CHECK(rounded(DType::b8, 0.5) == 1);
}

TEST_CASE("numerics: ulp is the gap to the next larger number", "[backends]") {
  for (const Format& format : kFormats) {
    const std::vector<Number> numbers = positives(format);
    int failures = 0;
    for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
      failures += ulp(format.dtype, -numbers[i].value) != numbers[i + 1].value - numbers[i].value;
    }
    INFO(name(format.dtype));
    CHECK(failures == 0);
  }
  CHECK(ulp(DType::f32, 1) == std::ldexp(1.0, -23));
  CHECK(ulp(DType::i64, 100) == 1);
}
