#include "tensor/numerics.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "tensor/convert.hpp"

namespace pw {
namespace {

using convert::read, convert::write;

template <class T>
T saturate(double value) {
  if (std::isnan(value)) return 0;
  // Compared as doubles: 2^63 itself is out of range, and max() of i64 rounds up to it.
  if (value >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

}  // namespace

FloatFormat format_of(DType dtype) {
  switch (dtype) {
    case DType::f8e4m3: return {3, -6, 8, 448};
    case DType::f8e5m2: return {2, -14, 15, 57344};
    case DType::f16: return {10, -14, 15, 65504};
    case DType::bf16: return {7, -126, 127, 0x1.fep127};
    case DType::f32: return {23, -126, 127, std::numeric_limits<float>::max()};
    case DType::f64: return {52, -1022, 1023, std::numeric_limits<double>::max()};
    case DType::b8:
    case DType::i8:
    case DType::i32:
    case DType::i64:
    case DType::u8: break;
  }
  return {};
}

std::int64_t order_of(DType dtype, const std::byte* data, std::int64_t i) {
  const auto size = static_cast<std::size_t>(size_of(dtype));
  std::uint64_t bits = 0;
  std::memcpy(&bits, data + static_cast<std::size_t>(i) * size, size);
  const std::uint64_t sign = std::uint64_t{1} << (8 * size - 1);
  const auto magnitude = static_cast<std::int64_t>(bits & (sign - 1));
  return bits & sign ? -magnitude : magnitude;
}

std::uint16_t to_bf16(float x) { return convert::f32_to_bf16(x); }
float from_bf16(std::uint16_t bits) { return convert::bf16_to_f32(bits); }
std::uint16_t to_f16(float x) { return convert::f32_to_f16(x); }
float from_f16(std::uint16_t bits) { return convert::f16_to_f32(bits); }
std::uint8_t to_f8e4m3(float x) { return convert::f32_to_f8e4m3(x); }
float from_f8e4m3(std::uint8_t bits) { return convert::f8e4m3_to_f32(bits); }
std::uint8_t to_f8e5m2(float x) { return convert::f32_to_f8e5m2(x); }
float from_f8e5m2(std::uint8_t bits) { return convert::f8e5m2_to_f32(bits); }

double load(DType dtype, const std::byte* data, std::int64_t i) {
  switch (dtype) {
    case DType::b8: return read<std::uint8_t>(data, i) != 0 ? 1 : 0;
    case DType::i8: return read<std::int8_t>(data, i);
    case DType::i32: return read<std::int32_t>(data, i);
    case DType::i64: return static_cast<double>(read<std::int64_t>(data, i));
    case DType::u8: return read<std::uint8_t>(data, i);
    case DType::f8e4m3: return from_f8e4m3(read<std::uint8_t>(data, i));
    case DType::f8e5m2: return from_f8e5m2(read<std::uint8_t>(data, i));
    case DType::f16: return from_f16(read<std::uint16_t>(data, i));
    case DType::bf16: return from_bf16(read<std::uint16_t>(data, i));
    case DType::f32: return read<float>(data, i);
    case DType::f64: return read<double>(data, i);
  }
  return 0;
}

double distance(DType a_dtype, const std::byte* a, DType b_dtype, const std::byte* b,
                std::int64_t i) {
  // It holds every i64 and every f64.
  const auto exactly = [i](DType dtype, const std::byte* data) -> long double {
    if (dtype == DType::i64) return read<std::int64_t>(data, i);
    return load(dtype, data, i);
  };
  static_assert(std::numeric_limits<long double>::digits >= 64);
  return static_cast<double>(std::fabs(exactly(a_dtype, a) - exactly(b_dtype, b)));
}

void store(DType dtype, std::byte* data, std::int64_t i, double value) {
  switch (dtype) {
    case DType::b8: return write<std::uint8_t>(data, i, value != 0 ? 1 : 0);
    case DType::i8: return write(data, i, saturate<std::int8_t>(value));
    case DType::i32: return write(data, i, saturate<std::int32_t>(value));
    case DType::i64: return write(data, i, saturate<std::int64_t>(value));
    case DType::u8: return write(data, i, saturate<std::uint8_t>(value));
    case DType::f8e4m3: return write(data, i, to_f8e4m3(convert::f64_to_f32_odd(value)));
    case DType::f8e5m2: return write(data, i, to_f8e5m2(convert::f64_to_f32_odd(value)));
    case DType::f16: return write(data, i, to_f16(convert::f64_to_f32_odd(value)));
    case DType::bf16: return write(data, i, to_bf16(convert::f64_to_f32_odd(value)));
    case DType::f32: return write(data, i, static_cast<float>(value));
    case DType::f64: return write(data, i, value);
  }
}

double rounded(DType dtype, double value) {
  std::byte bytes[8] = {};
  store(dtype, bytes, 0, value);
  return load(dtype, bytes, 0);
}

double ulp(DType dtype, double value) {
  if (!is_float(dtype)) return 1;
  if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
  const FloatFormat format = format_of(dtype);
  const int exponent = value == 0 ? format.smallest : std::max(std::ilogb(value), format.smallest);
  return std::ldexp(1.0, exponent - format.mantissa);
}

double smallest_of(DType dtype) {
  const FloatFormat format = format_of(dtype);
  return std::ldexp(1.0, format.smallest - format.mantissa);
}

}  // namespace pw
