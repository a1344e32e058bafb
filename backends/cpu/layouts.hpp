// Row kernels that compute each element from those at its place, and so run on operands in any
// common layout.
#pragma once

#include <functional>
#include <optional>

#include "codegen/rowprogram/grouping.hpp"
#include "tensor/array.hpp"

namespace pw::cpu {

/// Returns true if all arguments of a unit have one shape, its nodes are pointwise, and at most one
/// reader of each result needs a row-major copy. `reads_any` returns true for other nodes that need
/// none.
[[nodiscard]] bool keeps_layout(const Graph& graph, const rows::RunUnit& unit,
                                const std::function<bool(NodeId)>& reads_any);

/// Returns true if the elements have no gaps and do not overlap, in some order of the dims.
[[nodiscard]] bool is_dense(const Array& array);
/// Returns true if the elements are at the places that these strides give them.
[[nodiscard]] bool has_strides(const Array& array, const Extents& strides);
/// Returns the array itself if it has these dense strides, else a copy that has.
[[nodiscard]] Array with_strides(const Array& array, const Extents& strides);

}  // namespace pw::cpu
