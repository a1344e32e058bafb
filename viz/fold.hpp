// Groups nodes and finds equal groups, so that each unique shape is drawn once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viz/links.hpp"

namespace pw::viz {

enum class GroupKind : std::uint8_t { captured, eager, layer, run, module };

struct Unit {  ///< a group, or a node outside all groups
  bool group = false;
  std::uint32_t index = 0;  ///< index of the group, or union position
};

struct Group {  ///< a piece, a layer, a run between splitting ops, or a module inside one
  std::string name;
  GroupKind kind = GroupKind::layer;
  std::vector<std::uint32_t> nodes = {};  ///< union positions of all nodes in it, in order
  std::uint32_t parent = kNobody;         ///< the enclosing group
  std::vector<Unit> sequence = {};        ///< its contents, as in Folding::sequence
  std::uint32_t piece_class = kNobody;    ///< of a piece; pieces of two classes are never equal
  std::uint32_t same_as =
      kNobody;  ///< the first group equal to it, up to layer names, weights and value names
  std::vector<std::uint32_t> copies =
      {};                            ///< for a first group: all groups equal to it, itself included
  std::uint32_t drawn_as = kNobody;  ///< the first of its equal siblings
  std::vector<std::uint32_t> siblings =
      {};  ///< for such a first sibling: all of them, itself included
};

struct Folding {
  std::vector<Group> groups;   ///< top-level groups first, then each after its parent
  std::vector<Unit> sequence;  ///< every group in no other and every node in none; in this order
                               ///< all edges of all versions go forwards
  std::vector<std::uint32_t> group_of;  ///< by union position: the top-level group, or kNobody
  std::vector<std::uint32_t> inner_of;  ///< by union position: the innermost group, or kNobody
  std::vector<std::uint32_t>
      drawn_as;        ///< by union position: the node drawn in its place, itself if drawn
  std::string reason;  ///< the grouping criterion in words; empty if nothing is grouped
};

/// Maximum nesting depth of modules. Groups that no topological order allows are cut into parts:
/// "piece_1 (part 2)". Inside these, nodes with one module path form a group.
inline constexpr std::size_t kDeepest = 8;
Folding fold(const UnionGraph& graph, const Links& links, const VizInput& input, Collapse collapse);

}  // namespace pw::viz
