// Scalar conversions of every dtype: round to nearest even; fp8 saturates to its largest finite
// value and keeps NaN, and infinity where it has one; integers from reals truncate toward zero and
// saturate. These are the reference that generated code is checked against.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/dtype.hpp"

namespace pw {

[[nodiscard]] std::uint16_t to_bf16(float x);
[[nodiscard]] float from_bf16(std::uint16_t bits);
[[nodiscard]] std::uint16_t to_f16(float x);  ///< overflow gives infinity, as IEEE does
[[nodiscard]] float from_f16(std::uint16_t bits);
[[nodiscard]] std::uint8_t to_f8e4m3(float x);  ///< the "fn" form: no infinity, ±448 is the largest
[[nodiscard]] float from_f8e4m3(std::uint8_t bits);
[[nodiscard]] std::uint8_t to_f8e5m2(float x);  ///< numbers saturate to ±57344, infinity stays
[[nodiscard]] float from_f8e5m2(std::uint8_t bits);

/// The numbers of a floating dtype; all zeros for any other.
struct FloatFormat {
  int mantissa = 0;    ///< bits behind the point
  int smallest = 0;    ///< exponent of the smallest normal number
  int greatest = 0;    ///< exponent of the largest number
  double largest = 0;  ///< finite
};
[[nodiscard]] FloatFormat format_of(DType dtype);
/// The bits of float `i` of an array in the order of their values: neighbours differ by one, and
/// both zeros are 0.
[[nodiscard]] std::int64_t order_of(DType dtype, const std::byte* data, std::int64_t i);

/// Element `i` of an array of `dtype`, as double (exact but for i64 above 2^53).
[[nodiscard]] double load(DType dtype, const std::byte* data, std::int64_t i);
/// Rounds once, from double to the dtype (f32-range types round from double directly, not through
/// f32).
void store(DType dtype, std::byte* data, std::int64_t i, double value);
/// `value` as it reads back after being stored as `dtype`.
[[nodiscard]] double rounded(DType dtype, double value);
/// The distance from |value| to the next larger number of the dtype.
[[nodiscard]] double ulp(DType dtype, double value);

}  // namespace pw
