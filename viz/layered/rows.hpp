// Phases 3 and 4 of a layered layout: orders within ranks, and coordinates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "viz/layered/lanes.hpp"

namespace pw::viz {

using Rows = std::vector<std::vector<std::uint32_t>>;  ///< vertices by rank, from left to right

/// Orders the vertices of each rank to reduce crossings.
[[nodiscard]] Rows order_rows(const LaneGraph& graph, std::uint32_t ranks, std::size_t sweeps);
/// Returns the centre of each vertex. Vertices of a row do not overlap.
[[nodiscard]] std::vector<double> place_rows(const LaneGraph& graph, const Rows& rows,
                                             const std::vector<LayeredNode>& nodes,
                                             const LayeredOptions& options);

}  // namespace pw::viz
