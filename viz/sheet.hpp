// Where things stand: the nodes of each unique group, laid out once, and the groups and single
// nodes of the whole, laid out as closed boxes, with equal groups folded and unfolded, and, folded,
// as open ones.
#pragma once

#include <cstdint>
#include <vector>

#include "viz/fold.hpp"
#include "viz/layered.hpp"

namespace pw::viz {

struct SheetEdge {
  std::uint32_t from = 0, to = 0;     ///< nodes of the sheet
  std::uint32_t first = 0, last = 0;  ///< versions in which it is there; between them, another edge
};

/// The frame around the nodes of an open group, in pixels.
struct Frame {
  static constexpr double side = 14, top = 24, bottom = 12;
};

struct Sheet {
  std::vector<LayeredNode> nodes;
  std::vector<SheetEdge> edges;  ///< lanes of the layout are by edge
  Layered layout;
};

/// A group: its nodes in order, then ports on top for what it reads outside, then one port for each
/// node that is read outside. What is the same source in every copy shares a port.
struct Shape {
  std::uint32_t group = 0;            ///< that it was laid out for
  std::uint32_t sources = 0;          ///< number of ports on top
  std::vector<std::uint32_t> ports;   ///< of each link from outside, in the order of the links
  std::vector<std::uint32_t> leaves;  ///< places of the nodes with a port at the bottom
  Sheet sheet;
};

struct Item {  ///< of a top sheet
  enum class Kind : std::uint8_t { group, node, input, output };
  Kind kind = Kind::group;
  std::uint32_t index = 0;  ///< of the group, union position, number of the input or output
};

struct Top {
  std::vector<Item> items;
  Sheet sheet;
};

struct Placement {
  std::vector<Shape> shapes;
  std::vector<std::uint32_t> shape_of;  ///< by group
  Top folded;                           ///< each shape once, closed
  Top opened;                           ///< the same items, every group as large as its shape
  Top unfolded;                         ///< closed; no items, if nothing is folded
};

Placement place(const UnionGraph& graph, const Links& links, const Folding& folding,
                const StageProgress& progress = {});

}  // namespace pw::viz
