// Bit-level conversions between f32 and narrow floating types, with few branches so that loops over
// them vectorise. numerics.cpp exports them as functions; kernels include them for inner loops.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pw::convert {

/// Returns element `i` of an array; no alignment is required.
template <class T>
T read(const std::byte* data, std::int64_t i) {
  T value;
  std::memcpy(&value, data + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <class T>
void write(std::byte* data, std::int64_t i, T value) {
  std::memcpy(data + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

inline float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t f32_to_bf16(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t even = u + 0x7fffu + ((u >> 16) & 1u);
  const std::uint32_t quiet = u | 0x00400000u;  // a NaN stays one even if only its low bits are set
  return static_cast<std::uint16_t>(((u & 0x7fffffffu) > 0x7f800000u ? quiet : even) >> 16);
}

/// Converts an IEEE-like small float with M mantissa bits, held in the low bits. An exponent of all
/// ones is infinity or NaN.
template <int M, int Bias>
float small_to_f32(std::uint32_t magnitude, std::uint32_t sign) {
  // The multiplication renormalises subnormals exactly.
  const float value = std::bit_cast<float>(magnitude << (23 - M)) *
                      std::bit_cast<float>(static_cast<std::uint32_t>(127 + 127 - Bias) << 23);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign << 31);
}

inline float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t magnitude = bits & 0x7fffu, sign = bits >> 15;
  const auto finite = std::bit_cast<std::uint32_t>(small_to_f32<10, 15>(magnitude, sign));
  return std::bit_cast<float>(finite | (magnitude >= 0x7c00u ? 0x7f800000u : 0u));
}
inline float f8e4m3_to_f32(std::uint8_t bits) {
  const std::uint32_t magnitude = bits & 0x7fu, sign = bits >> 7;
  const auto finite = std::bit_cast<std::uint32_t>(small_to_f32<3, 7>(magnitude, sign));
  return std::bit_cast<float>(finite | (magnitude == 0x7fu ? 0x7fc00000u : 0u));
}
inline float f8e5m2_to_f32(std::uint8_t bits) {
  return f16_to_f32(static_cast<std::uint16_t>(bits << 8));
}

/// Rounds a magnitude to M bits, ties to even. Below the smallest normal the addition of 2^23 does
/// the rounding.
template <int M, int Bias>
std::uint32_t round_magnitude(std::uint32_t u) {
  const float a = std::bit_cast<float>(u);
  if (u < (static_cast<std::uint32_t>(128 - Bias) << 23)) {
    const float unit = std::bit_cast<float>(static_cast<std::uint32_t>(127 + Bias - 1 + M) << 23);
    return std::bit_cast<std::uint32_t>(a * unit + 8388608.0f) & 0xffffu;
  }
  constexpr int kShift = 23 - M;
  const std::uint32_t even = u + ((1u << (kShift - 1)) - 1u) + ((u >> kShift) & 1u);
  return (even >> kShift) - (static_cast<std::uint32_t>(127 - Bias) << M);
}

inline std::uint16_t f32_to_f16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t u = bits & 0x7fffffffu, sign = bits >> 31 << 15;
  if (u > 0x7f800000u) return static_cast<std::uint16_t>(0x7e00u | sign);
  if (u >= 0x477ff000u) return static_cast<std::uint16_t>(0x7c00u | sign);  // 65520 and above
  return static_cast<std::uint16_t>(round_magnitude<10, 15>(u) | sign);
}
inline std::uint8_t f32_to_f8e4m3(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t u = bits & 0x7fffffffu, sign = bits >> 31 << 7;
  if (u > 0x7f800000u) return static_cast<std::uint8_t>(0x7fu | sign);
  if (u >= 0x43e00000u) return static_cast<std::uint8_t>(0x7eu | sign);  // 448 and above
  return static_cast<std::uint8_t>(round_magnitude<3, 7>(u) | sign);
}
inline std::uint8_t f32_to_f8e5m2(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t u = bits & 0x7fffffffu, sign = bits >> 31 << 7;
  if (u > 0x7f800000u) return static_cast<std::uint8_t>(0x7fu | sign);
  if (u == 0x7f800000u) return static_cast<std::uint8_t>(0x7cu | sign);
  if (u >= 0x47600000u) return static_cast<std::uint8_t>(0x7bu | sign);  // 57344 and above
  return static_cast<std::uint8_t>(round_magnitude<2, 15>(u) | sign);
}

/// Returns the f32 nearest toward zero with its last bit set if inexact ("round to odd"). A later
/// rounding to at most 22 bits then equals a single rounding from double.
inline float f64_to_f32_odd(double x) {
  const float f = static_cast<float>(x);
  if (static_cast<double>(f) == x || x != x) return f;
  auto bits = std::bit_cast<std::uint32_t>(f);
  const double back = static_cast<double>(f);
  if ((back < 0 ? -back : back) > (x < 0 ? -x : x))
    --bits;  // it was rounded away from zero, perhaps to infinity
  return std::bit_cast<float>(bits | 1u);
}

}  // namespace pw::convert
