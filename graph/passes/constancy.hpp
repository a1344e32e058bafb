// Determines whether a value is the same for all steps: a weight, or computed of weights and
// numbers alone.
#pragma once

#include <string>

#include "graph/graph.hpp"

namespace pw {

/// Checks that the value is an input declared as a weight. `why` describes what it is instead.
[[nodiscard]] Truth is_weight(const Graph& graph, ValueId value, std::string* why = nullptr);

/// Checks that the value is computed of weights and numbers alone. Unknown after an op with an
/// effect or an unknown op; `why` names the value that decided.
[[nodiscard]] Truth is_constant(const Graph& graph, ValueId value, std::string* why = nullptr);

/// Returns true if all sizes in the attribute are numbers.
[[nodiscard]] bool has_fixed_sizes(const Dims& dims, const Attribute& attribute);
/// Returns true if an attribute of the node is a size that depends on the step's tokens.
[[nodiscard]] bool reads_a_symbol(const Graph& graph, NodeId node);
/// Returns true if the value's type is known and all its extents are numbers.
[[nodiscard]] bool has_fixed_type(const Graph& graph, ValueId value);

}  // namespace pw
