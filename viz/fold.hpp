// Which nodes stand together, and which groups of nodes are equal, so that each unique shape is
// drawn once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viz/links.hpp"

namespace pw::viz {

enum class GroupKind : std::uint8_t { captured, eager, layer, run };

struct Group {  ///< a piece, a layer, or a run between splitting ops
  std::string name;
  GroupKind kind = GroupKind::layer;
  std::vector<std::uint32_t> nodes;  ///< positions in the union, in order
  std::uint32_t same_as =
      kNobody;  ///< the first group equal to it, up to layer names, weights and value names
  std::vector<std::uint32_t> copies;  ///< of a first group: all equal to it, itself included
};

struct Unit {  ///< a group, or a node that is in none
  bool group = false;
  std::uint32_t index = 0;  ///< of the group; union position
};

struct Folding {
  std::vector<Group> groups;
  std::vector<Unit> sequence;  ///< every group with nodes and every node in none; in this order all
                               ///< edges of all versions go forwards
  std::vector<std::uint32_t> group_of;  ///< by union position, or kNobody
  std::vector<std::uint32_t>
      drawn_as;        ///< by union position: the node that is drawn for it, itself if it is drawn
  std::string reason;  ///< what was folded by, in words; empty when nothing is grouped
};

/// Groups that no order allows are cut into parts, which are groups: "piece_1 (part 2)".
Folding fold(const UnionGraph& graph, const Links& links, const VizInput& input, Collapse collapse);

}  // namespace pw::viz
