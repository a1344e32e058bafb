// Scalar conversions of every dtype. Floats round to nearest even; fp8 saturates to its largest
// finite value and keeps NaN, and infinity if the format has one. Reals to integers truncate toward
// zero and saturate. Generated code is checked against these functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/dtype.hpp"

namespace pw {

[[nodiscard]] std::uint16_t to_bf16(float x);
[[nodiscard]] float from_bf16(std::uint16_t bits);
[[nodiscard]] std::uint16_t to_f16(float x);  ///< overflow gives infinity, as in IEEE 754
[[nodiscard]] float from_f16(std::uint16_t bits);
[[nodiscard]] std::uint8_t to_f8e4m3(float x);  ///< the "fn" form: no infinity, ±448 is the largest
[[nodiscard]] float from_f8e4m3(std::uint8_t bits);
[[nodiscard]] std::uint8_t to_f8e5m2(float x);  ///< numbers saturate to ±57344, infinity stays
[[nodiscard]] float from_f8e5m2(std::uint8_t bits);

/// Properties of a floating dtype; all zeros for any other.
struct FloatFormat {
  int mantissa = 0;    ///< mantissa bits after the point
  int smallest = 0;    ///< exponent of the smallest normal number
  int greatest = 0;    ///< exponent of the largest number
  double largest = 0;  ///< finite
};
[[nodiscard]] FloatFormat format_of(DType dtype);
/// Returns the ordinal of float `i` of an array: neighbouring values differ by one, and both zeros
/// are 0.
[[nodiscard]] std::int64_t order_of(DType dtype, const std::byte* data, std::int64_t i);

/// Returns element `i` of an array of `dtype` as double (exact except for i64 above 2^53).
[[nodiscard]] double load(DType dtype, const std::byte* data, std::int64_t i);
/// Returns the distance of element `i` of two arrays, 0 only if they are equal, also for i64; NaN
/// if one is NaN or both are the same infinity.
[[nodiscard]] double distance(DType a_dtype, const std::byte* a, DType b_dtype, const std::byte* b,
                              std::int64_t i);
/// Rounds a double to the dtype once (f32-range types round directly, not through f32).
void store(DType dtype, std::byte* data, std::int64_t i, double value);
/// Returns `value` as read back after being stored as `dtype`.
[[nodiscard]] double rounded(DType dtype, double value);
/// Returns the distance from |value| to the next larger number of the dtype.
[[nodiscard]] double ulp(DType dtype, double value);
/// Returns the smallest positive number of a float dtype.
[[nodiscard]] double smallest_of(DType dtype);
/// A difference of at most this many of the smallest numbers is rounding, not underflow.
inline constexpr double kMostLostSteps = 1024;

}  // namespace pw
