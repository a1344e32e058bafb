// Which nodes of two versions of a graph are the same, and which differ: after an edit, the nodes
// whose matches have to be looked for again.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.hpp"

namespace pw {

struct Correspondence {
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::vector<std::uint32_t> now_of;        ///< by node of the old graph
  std::vector<std::uint32_t> old_of;        ///< by node of the new one; of equal order in both
  std::vector<std::uint32_t> value_now_of;  ///< by value of the old graph
  /// Nodes of the new graph that are new, or whose op, attributes, types or operands are other
  /// ones, or whose results have more or fewer users.
  std::vector<NodeId> changed;
};

/// Pairs nodes by their order, whatever their ids: an edited file that was read again is compared
/// as well as a graph that was changed in place. A difference that is not found costs time only,
/// since what has no counterpart counts as new. Both graphs have the same context.
[[nodiscard]] Correspondence correspond(const Graph& old, const Graph& now);

}  // namespace pw
