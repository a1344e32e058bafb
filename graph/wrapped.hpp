// Whole numbers combined with tensors of small integers.
#pragma once

#include <cmath>
#include <cstdint>

#include "graph/dtype.hpp"

namespace pw {

/// Reduces a whole number modulo the range of an 8- or 32-bit integer dtype, as PyTorch does.
/// Returns other numbers, and numbers for other dtypes, unchanged.
inline double wrapped(double value, DType dtype) {
  constexpr double kMost = 1e15;  // in which whole numbers are exact
  if (!is_integer(dtype) || std::trunc(value) != value || std::abs(value) > kMost) return value;
  const auto whole = static_cast<std::int64_t>(value);
  if (dtype == DType::u8) return static_cast<std::uint8_t>(whole);
  if (dtype == DType::i8) return static_cast<std::int8_t>(whole);
  return dtype == DType::i32 ? static_cast<std::int32_t>(whole) : value;
}

}  // namespace pw
