// Nests groups by module paths.
#pragma once

#include <string_view>

#include "viz/layered/arrange.hpp"

namespace pw::viz {

/// Returns true for a component of a module path that is a number: "3", or "3@1" where the module
/// is called again.
[[nodiscard]] bool is_number(std::string_view step);

/// Groups the nodes of each group by the next component of their module path, recursively:
/// "layers.3.mlp.gate" and "layers.3.mlp.up" form a group in "layers.3". A group has at least two
/// nodes and fewer than its parent. Sets `inner_of`, and parent and sequence of the groups.
void nest_modules(const UnionGraph& graph, Arranger& arranger, Folding& folding);

}  // namespace pw::viz
