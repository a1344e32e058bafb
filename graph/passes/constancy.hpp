// Whether a value is the same for all steps: a weight, or computed of weights and numbers alone.
#pragma once

#include <string>

#include "graph/graph.hpp"

namespace pw {

/// Whether the value is an input declared to be a weight. `why` says what it is instead.
[[nodiscard]] Truth is_weight(const Graph& graph, ValueId value, std::string* why = nullptr);

/// Whether all that the value is computed of are weights and numbers. Unknown behind an op with an
/// effect, or one that nothing is known of; `why` names the value that decided.
[[nodiscard]] Truth is_constant(const Graph& graph, ValueId value, std::string* why = nullptr);

/// Whether all sizes that the attribute holds are numbers.
[[nodiscard]] bool has_fixed_sizes(const Dims& dims, const Attribute& attribute);
/// Whether an attribute of the node is a size that the tokens of a step decide.
[[nodiscard]] bool reads_a_symbol(const Graph& graph, NodeId node);
/// Whether the value's type is known, and all its extents are numbers.
[[nodiscard]] bool has_fixed_type(const Graph& graph, ValueId value);

}  // namespace pw
