// A layout that is much taller than wide, in columns, as the text of a newspaper stands.
#pragma once

#include <cstdint>
#include <vector>

#include "viz/layered/layered.hpp"

namespace pw::viz {

/// Moves what is laid out; the column of each rank, all 0 where one is enough. Lanes are right of
/// edges that stay in their column.
std::vector<std::uint32_t> stand_in_columns(Layered& layout, const std::vector<LayeredNode>& nodes,
                                            const std::vector<LayeredEdge>& edges, double below);

}  // namespace pw::viz
