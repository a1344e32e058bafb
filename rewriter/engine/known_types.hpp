// Facts about types that the graph does not state: that two values have the same one, and the dtype
// that a cast gives although its extents are unknown.
// Both are used only if a type is unknown; a stated type always decides.
#pragma once

#include <functional>
#include <optional>

#include "graph/graph.hpp"

namespace pw {

/// Returns true if the values have equal types for all types of their inputs, by the signatures of
/// the ops between. `above` maps an input of `of_b` to a value of `of_a`; without a valid entry,
/// nothing else is known about the input.
[[nodiscard]] bool surely_same_type(const Graph& of_a, ValueId a, const Graph& of_b, ValueId b,
                                    const std::function<ValueId(ValueId)>& above = {});

/// Returns the dtype of a value of unknown type, if the ops that produce it determine it.
[[nodiscard]] std::optional<DType> surely_dtype(const Graph& graph, ValueId value);

}  // namespace pw
