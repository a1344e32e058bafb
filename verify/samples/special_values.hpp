// The numbers of each dtype that rules go wrong at, in a fixed order, and which of them an element
// of a sample holds.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.hpp"
#include "verify/samples/contents.hpp"

namespace pw {

/// The bytes of an element, in the low bits.
using ElementBits = std::uint64_t;

/// What elements of a dtype hold in samples of these contents, each once: both ends of an integer
/// type and what stands around zero; for floats the ends of the normal and of the subnormal
/// numbers, ties and powers; infinities; NaN. Empty where the contents have none.
[[nodiscard]] const std::vector<ElementBits>& special_values(DType dtype, Contents contents);

/// How many elements in a row hold every special value, with ordinary numbers between them.
[[nodiscard]] std::int64_t cycle_of(DType dtype, Contents contents);

/// The place among the special values of what element `row` of input `column` holds; beyond their
/// number for an ordinary one. Of any two inputs with as many values, all pairs meet in the first
/// cycle² rows; any cycle of rows has all values.
[[nodiscard]] std::size_t special_at(DType dtype, Contents contents, std::uint64_t row,
                                     std::uint64_t column);

void store_bits(const Tensor& tensor, std::int64_t i, ElementBits bits);
[[nodiscard]] ElementBits load_bits(const Tensor& tensor, std::int64_t i);

}  // namespace pw
