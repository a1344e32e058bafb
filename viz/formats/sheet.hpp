// Layouts of the page: the contents of each unique group, laid out once, and the top level. Groups
// appear closed with equal ones folded, closed and unfolded, or folded and open.
#pragma once

#include <cstdint>
#include <vector>

#include "viz/fold.hpp"
#include "viz/layered/layered.hpp"

namespace pw::viz {

struct SheetEdge {
  std::uint32_t from = 0, to = 0;  ///< nodes of the sheet
  std::uint32_t first = 0,
                last = 0;  ///< first and last version that have it; in between it is another edge
};

/// The frame around the nodes of an open group, in pixels.
struct Frame {
  static constexpr double kSide = 14, kTop = 24, kBottom = 12;
};

struct Sheet {
  std::vector<LayeredNode> nodes;
  std::vector<SheetEdge> edges;  ///< the layout's lanes are by edge
  Layered layout;
  std::size_t next = 0;  ///< pairs of nodes with edges to a further copy, which `edges` omits
};

struct Item {  ///< a node of a sheet
  enum class Kind : std::uint8_t { group, node, input, output, source, leaf };
  Kind kind = Kind::group;
  /// At the top level: the group, union position, or number of the input or output. In a group: the
  /// index among its groups, the node's index, or the port's number.
  std::uint32_t index = 0;
};

struct Level {  ///< the contents of one level; all three sheets are equal if there is no nesting
  std::vector<Item> items;           ///< of `folded` and `opened`
  Sheet folded;                      ///< equal groups once, all closed
  Sheet opened;                      ///< every group as large as its shape
  std::vector<Item> unfolded_items;  ///< empty if nothing is folded
  Sheet unfolded;                    ///< all groups closed
  [[nodiscard]] bool any_group() const;
};

/// The layout of a group: input ports on top, its nodes and groups in order, and an output port for
/// each node that is read outside. Inputs with the same source in every copy share a port.
struct Shape {
  std::uint32_t group = 0;            ///< the group that it was laid out for
  std::uint32_t sources = 0;          ///< number of input ports
  std::vector<std::uint32_t> ports;   ///< of each incoming link, in the order of the links
  std::vector<std::uint32_t> leaves;  ///< indices of the nodes with an output port
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
