#include "viz/crop.hpp"

#include <algorithm>
#include <utility>

namespace pw::viz {
namespace {

/// Returns, for each box, whether it is kept; empty if nothing changed.
std::vector<bool> near_changes(const Scene& scene) {
  std::vector<bool> changed(scene.boxes.size(), false);
  for (std::size_t i = 0; i < changed.size(); ++i) changed[i] = scene.boxes[i].mark != Mark::plain;
  std::vector<bool> out = changed;
  for (const Edge& edge : scene.edges)
    if (edge.mark != Mark::plain || changed[edge.from] || changed[edge.to])
      out[edge.from] = out[edge.to] = true;
  if (std::none_of(out.begin(), out.end(), [](bool stays) { return stays; })) return {};
  return out;
}

}  // namespace

std::size_t crop_to_changes(Scene& scene) {
  const std::vector<bool> stays = near_changes(scene);
  if (stays.empty()) return 0;
  std::vector<std::uint32_t> moved(scene.boxes.size(), kNobody);
  std::vector<Box> boxes;
  for (std::size_t i = 0; i < stays.size(); ++i) {
    if (!stays[i]) continue;
    moved[i] = static_cast<std::uint32_t>(boxes.size());
    boxes.push_back(std::move(scene.boxes[i]));
  }
  const std::size_t left_out = scene.boxes.size() - boxes.size();
  scene.boxes = std::move(boxes);
  std::erase_if(scene.edges, [&](const Edge& e) { return !stays[e.from] || !stays[e.to]; });
  for (Edge& edge : scene.edges) edge.from = moved[edge.from], edge.to = moved[edge.to];
  for (std::uint32_t& box : scene.box_of)
    if (box != kNobody) box = moved[box];
  return left_out;
}

}  // namespace pw::viz
