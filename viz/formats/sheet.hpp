// Where things stand: what is in each unique group, laid out once, and the groups and single nodes
// of the whole; groups as closed boxes, with equal ones folded and unfolded, and, folded, as open
// ones.
#pragma once

#include <cstdint>
#include <vector>

#include "viz/fold.hpp"
#include "viz/layered/layered.hpp"

namespace pw::viz {

struct SheetEdge {
  std::uint32_t from = 0, to = 0;     ///< nodes of the sheet
  std::uint32_t first = 0, last = 0;  ///< versions in which it is there; between them, another edge
};

/// The frame around the nodes of an open group, in pixels.
struct Frame {
  static constexpr double kSide = 14, kTop = 24, kBottom = 12;
};

struct Sheet {
  std::vector<LayeredNode> nodes;
  std::vector<SheetEdge> edges;  ///< lanes of the layout are by edge
  Layered layout;
  std::size_t next = 0;  ///< pairs of nodes with edges to a further copy, which are not among these
};

struct Item {  ///< a node of a sheet
  enum class Kind : std::uint8_t { group, node, input, output, source, leaf };
  Kind kind = Kind::group;
  /// In the whole: the group, union position, number of the input or output. In a group: the place
  /// of the group among those in it, the place of the node, number of the port.
  std::uint32_t index = 0;
};

struct Level {  ///< what stands beside each other; the three agree where nothing stands inside
  std::vector<Item> items;           ///< of `folded` and `opened`
  Sheet folded;                      ///< equal groups once, closed
  Sheet opened;                      ///< every group as large as its shape
  std::vector<Item> unfolded_items;  ///< empty, if nothing is folded
  Sheet unfolded;                    ///< closed
  [[nodiscard]] bool any_group() const;
};

/// A group: ports on top for what it reads outside, its nodes and groups in order, then a port at
/// the bottom for each node that is read outside. What is the same source in every copy shares a
/// port.
struct Shape {
  std::uint32_t group = 0;            ///< that it was laid out for
  std::uint32_t sources = 0;          ///< number of ports on top
  std::vector<std::uint32_t> ports;   ///< of each link from outside, in the order of the links
  std::vector<std::uint32_t> leaves;  ///< places of the nodes with a port at the bottom
  Level level;
};

struct Placement {
  std::vector<Shape> shapes;
  std::vector<std::uint32_t> shape_of;  ///< by group
  Level whole;
};

Placement place(const UnionGraph& graph, const Links& links, const Folding& folding,
                const StageProgress& progress = {});

}  // namespace pw::viz
