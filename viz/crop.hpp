// Crops a scene to its changes and their neighbors.
#pragma once

#include "viz/scene.hpp"

namespace pw::viz {

/// Keeps marked boxes, boxes at marked edges, and their neighbors; keeps an unmarked scene whole.
/// Returns the number of boxes removed.
std::size_t crop_to_changes(Scene& scene);

}  // namespace pw::viz
