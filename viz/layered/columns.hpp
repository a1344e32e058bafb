// Splits a layout that is much taller than wide into columns, like newspaper text.
#pragma once

#include <cstdint>
#include <vector>

#include "viz/layered/layered.hpp"

namespace pw::viz {

/// Moves the layout into columns. Returns the column of each rank, all 0 if one is enough. Lanes
/// are placed to the right of edges within their column.
std::vector<std::uint32_t> stand_in_columns(Layered& layout, const std::vector<LayeredNode>& nodes,
                                            const std::vector<LayeredEdge>& edges, double below);

}  // namespace pw::viz
