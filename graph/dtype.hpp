// The closed list of element types.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pw {

enum class DType : std::uint8_t { b8, i8, i32, i64, u8, f8e4m3, f8e5m2, f16, bf16, f32, f64 };
inline constexpr int kDTypeCount = 11;

[[nodiscard]] std::string_view name(DType dtype);
[[nodiscard]] std::optional<DType> dtype_named(std::string_view name);
[[nodiscard]] int size_of(DType dtype);  ///< bytes an element
[[nodiscard]] bool is_float(DType dtype);
[[nodiscard]] bool is_integer(DType dtype);  ///< i8, i32, i64, u8; not b8

/// Returns the common type of two operands by PyTorch's promotion: b8 < integers < floats, the
/// wider wins, f16 with bf16 gives f32. A weak side (rank 0) yields to the other unless it has a
/// higher category. fp8 with another float gives the other.
[[nodiscard]] DType promote(DType a, bool a_weak, DType b, bool b_weak);

}  // namespace pw
