// The contents of a picture: boxes, edges, and clusters with marks and texts, without positions and
// colors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viz/fold.hpp"

namespace pw::viz {

enum class Mark : std::uint8_t { plain, added, removed, changed };
[[nodiscard]] const char* glyph(Mark mark);  ///< "", "+", "−", "~"

enum class BoxKind : std::uint8_t { node, product, splitting, input, output, whole };

struct Box {
  BoxKind kind = BoxKind::node;
  Mark mark = Mark::plain;
  std::vector<std::string> lines;  ///< at most 40 characters each; the first is emphasized
  std::string tooltip;
  std::uint32_t cluster = kNobody;    ///< the innermost
  std::uint32_t node = kNobody;       ///< union position; for a whole group its first node
  std::uint32_t first = 0, last = 0;  ///< first and last version that have it
  std::size_t stands_for = 1;         ///< number of graph nodes
  double shade = -1;                  ///< overlay value from 0 to 1; negative for none
};

struct Edge {
  std::uint32_t from = 0, to = 0;  ///< boxes
  Mark mark = Mark::plain;
  bool back = false;  ///< leads to the next repetition of a folded group
  std::string tooltip;
  std::vector<std::uint32_t> versions;  ///< versions that have it, ascending
};

struct Cluster {
  std::string title;
  std::string tooltip;
  GroupKind kind = GroupKind::layer;
  std::size_t copies = 1;
  std::uint32_t parent = kNobody;  ///< the enclosing cluster, which has a lower index
};

struct Scene {
  std::string title;
  std::string caption;  ///< "showing 41 of 20 009 nodes: …"
  std::vector<Box> boxes;
  std::vector<Edge> edges;
  std::vector<Cluster> clusters;
  std::vector<std::uint32_t> box_of;  ///< by union position, or kNobody
};

/// Options of a scene. If there are too many nodes, the innermost groups become boxes first.
struct SceneForm {
  bool marks = false;    ///< mark boxes that only the first or only the last version has
  bool whole = false;    ///< draw each group as one box even if its nodes fit
  bool cropped = false;  ///< keep only what is marked, and its neighbors
};
Scene make_scene(const UnionGraph& graph, const Folding& folding, std::size_t most_boxes,
                 const SceneForm& form = {});

/// Returns a cluster and its ancestors, outermost first; empty for kNobody.
std::vector<std::uint32_t> clusters_around(const Scene& scene, std::uint32_t cluster);

/// Formats a number as "20 009".
std::string grouped_digits(std::size_t number);

}  // namespace pw::viz
