// Groups within groups, from module paths.
#pragma once

#include "viz/layered/arrange.hpp"

namespace pw::viz {

/// In each group, the nodes whose module paths go on alike ("layers.3.mlp.gate" and
/// "layers.3.mlp.up" in "layers.3") are a group, and so on inward. A group has at least two nodes
/// and less than what it stands in. Sets `inner_of`, and parent and sequence of groups.
void nest_modules(const UnionGraph& graph, Arranger& arranger, Folding& folding);

}  // namespace pw::viz
