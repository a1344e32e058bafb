// The values of each dtype that often break rules, in a fixed order, and their assignment to sample
// elements.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.hpp"
#include "verify/samples/contents.hpp"

namespace pw {

/// The bytes of an element, in the low bits.
using ElementBits = std::uint64_t;

/// Returns the special values of a dtype for these contents, each once. Integers: both ends of the
/// range and the neighbors of zero. Floats: the limits of the normal and subnormal numbers, ties,
/// powers; infinities; NaN. Empty if the contents have none.
[[nodiscard]] const std::vector<ElementBits>& special_values(DType dtype, Contents contents);

/// Returns the number of consecutive elements that hold every special value, interleaved with
/// ordinary numbers.
[[nodiscard]] std::int64_t cycle_of(DType dtype, Contents contents);

/// Returns the index of the special value at element `row` of input `column`, or an index past the
/// end for an ordinary value. For two inputs with the same number of values, the first cycle² rows
/// contain all pairs; any cycle of rows contains all values.
[[nodiscard]] std::size_t special_at(DType dtype, Contents contents, std::uint64_t row,
                                     std::uint64_t column);

void store_bits(const Tensor& tensor, std::int64_t i, ElementBits bits);
[[nodiscard]] ElementBits load_bits(const Tensor& tensor, std::int64_t i);

}  // namespace pw
