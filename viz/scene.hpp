// What a picture holds: boxes, edges and clusters, with marks and words, but no places and no
// colours.
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
  std::vector<std::string> lines;  ///< at most 40 characters each; the first stands out
  std::string tooltip;
  std::uint32_t cluster = kNobody;    ///< the innermost
  std::uint32_t node = kNobody;       ///< union position; a whole group: its first node
  std::uint32_t first = 0, last = 0;  ///< versions in which it is there
  std::size_t stands_for = 1;         ///< nodes of the graph
  double shade = -1;                  ///< of an overlay, 0 to 1; negative: none
};

struct Edge {
  std::uint32_t from = 0, to = 0;  ///< boxes
  Mark mark = Mark::plain;
  bool back = false;  ///< to the next repetition of a folded group
  std::string tooltip;
  std::vector<std::uint32_t> versions;  ///< in which it is there, ascending
};

struct Cluster {
  std::string title;
  std::string tooltip;
  GroupKind kind = GroupKind::layer;
  std::size_t copies = 1;
  std::uint32_t parent = kNobody;  ///< the cluster that it stands in, which is before it
};

struct Scene {
  std::string title;
  std::string caption;  ///< "showing 41 of 20 009 nodes: …"
  std::vector<Box> boxes;
  std::vector<Edge> edges;
  std::vector<Cluster> clusters;
  std::vector<std::uint32_t> box_of;  ///< by union position, or kNobody
};

/// Where there is no room for all nodes, the innermost groups become boxes first.
struct SceneForm {
  bool marks = false;    ///< on boxes that only the first or only the last of the versions has
  bool whole = false;    ///< each group is one box, even where there is room for its nodes
  bool cropped = false;  ///< to what is marked, and what that touches
};
Scene make_scene(const UnionGraph& graph, const Folding& folding, std::size_t most_boxes,
                 const SceneForm& form = {});

/// A cluster and those that it stands in, from the outside in; none of kNobody.
std::vector<std::uint32_t> clusters_around(const Scene& scene, std::uint32_t cluster);

/// "20 009".
std::string grouped_digits(std::size_t number);

}  // namespace pw::viz
