// Partitions a piece into fusion groups, each of which becomes one kernel of a backend that
// generates code. Adjacent row ops are fused if the group is convex and no op loses row
// parallelism.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::rows {

struct GroupingOptions {
  bool automatic = true;           ///< off: an op is a group, and a fused op too
  std::size_t max_nodes = 48;      ///< of a group
  std::size_t max_arguments = 24;  ///< of a group's program
  bool checks = false;             ///< programs check indices
};

/// What runs at once. Units are in an order in which they can run.
struct RunUnit {
  enum class Kind : std::uint8_t {
    rows,     ///< `program` computes it
    view,     ///< one node, whose result 0 is its operand byte for byte
    literal,  ///< one `constant`, folded into the programs that read it
    opaque,   ///< one node that is no row program; `why` says the reason
  };
  Kind kind = Kind::opaque;
  std::vector<NodeId> nodes;             ///< in the graph's order
  std::vector<ValueId> inputs, outputs;  ///< of `rows`: the program's arguments, in its
                                         ///< order, but for `program.valid`
  RowProgram program;                    ///< of `rows`
  Opaque why;
};

/// Every live node of the graph is in exactly one unit.
std::vector<RunUnit> group_rows(const Graph& graph, const GroupingOptions& options = {});

}  // namespace pw::rows
