// What is known of types where the graph states none: that two values have the same one, and the
// dtype that a cast gives though its extents are not known.
#pragma once

#include <functional>
#include <optional>

#include "graph/graph.hpp"

namespace pw {

/// Whether the values have one type for all types that their inputs may have, by the signatures of
/// the ops on the way. What `above` gives for an input of `of_b` is a value of `of_a`; an invalid
/// one, or none given: the input is a value that is not known otherwise.
[[nodiscard]] bool surely_same_type(const Graph& of_a, ValueId a, const Graph& of_b, ValueId b,
                                    const std::function<ValueId(ValueId)>& above = {});

/// The dtype of a value of unknown type, where the ops on the way tell it.
[[nodiscard]] std::optional<DType> surely_dtype(const Graph& graph, ValueId value);

}  // namespace pw
