// Partitions a piece into fusion groups; each becomes one kernel of a code-generating backend.
// Adjacent row ops are fused if the group is convex and no op loses row parallelism.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::rows {

struct GroupingOptions {
  bool automatic = true;           ///< off: each op is its own group, fused ops included
  std::size_t max_nodes = 48;      ///< limit for a group
  std::size_t max_arguments = 24;  ///< limit for a group's program
  bool checks = false;             ///< whether programs check indices
  bool wide_rows = false;          ///< whether rows of a few elements are joined
};

/// Nodes that run together. Units are in an executable order.
struct RunUnit {
  enum class Kind : std::uint8_t {
    rows,     ///< `program` computes the nodes
    view,     ///< one node, whose result 0 is its operand byte for byte
    literal,  ///< one `constant`, folded into the programs that read it
    opaque,   ///< one node that has no row program; `why` holds the reason
  };
  Kind kind = Kind::opaque;
  std::vector<NodeId> nodes;             ///< in the graph's order
  std::vector<ValueId> inputs, outputs;  ///< for `rows`: the program's arguments in order,
                                         ///< except `program.valid`
  RowProgram program;                    ///< for `rows`
  Opaque why;
};

/// Returns units that contain every live node of the graph exactly once.
std::vector<RunUnit> group_rows(const Graph& graph, const GroupingOptions& options = {});

}  // namespace pw::rows
