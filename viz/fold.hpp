// Which nodes stand together, and which groups of nodes are equal, so that each unique shape is
// drawn once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viz/links.hpp"

namespace pw::viz {

enum class GroupKind : std::uint8_t { captured, eager, layer, run, module };

struct Unit {  ///< a group, or a node that is in none
  bool group = false;
  std::uint32_t index = 0;  ///< of the group; union position
};

struct Group {  ///< a piece, a layer, a run between splitting ops, or a module inside of one
  std::string name;
  GroupKind kind = GroupKind::layer;
  std::vector<std::uint32_t> nodes = {};  ///< positions in the union, in order; of all in it
  std::uint32_t parent = kNobody;         ///< the group that it stands in
  std::vector<Unit> sequence = {};        ///< what stands in it, as Folding::sequence
  std::uint32_t same_as =
      kNobody;  ///< the first group equal to it, up to layer names, weights and value names
  std::vector<std::uint32_t> copies = {};  ///< of a first group: all equal to it, itself included
  std::uint32_t drawn_as = kNobody;        ///< the first of those equal to it that stand beside it
  std::vector<std::uint32_t> beside = {};  ///< of such a first one: all of them, itself included
};

struct Folding {
  std::vector<Group> groups;   ///< those in no other first, then each after the one it stands in
  std::vector<Unit> sequence;  ///< every group in no other and every node in none; in this order
                               ///< all edges of all versions go forwards
  std::vector<std::uint32_t> group_of;  ///< by union position: in no other, or kNobody
  std::vector<std::uint32_t> inner_of;  ///< by union position: the innermost group, or kNobody
  std::vector<std::uint32_t>
      drawn_as;        ///< by union position: the node that is drawn for it, itself if it is drawn
  std::string reason;  ///< what was folded by, in words; empty when nothing is grouped
};

/// Groups that no order allows are cut into parts, which are groups: "piece_1 (part 2)". Inside of
/// them, what has one module path is a group, at most `kDeepest` levels down.
inline constexpr std::size_t kDeepest = 8;
Folding fold(const UnionGraph& graph, const Links& links, const VizInput& input, Collapse collapse);

}  // namespace pw::viz
