// A scene cut down to what changed in it, and what that touches.
#pragma once

#include "viz/scene.hpp"

namespace pw::viz {

/// Keeps the boxes that are marked or at a marked edge, and their neighbours. A scene without marks
/// stays whole. Returns how many boxes were left out.
std::size_t crop_to_changes(Scene& scene);

}  // namespace pw::viz
