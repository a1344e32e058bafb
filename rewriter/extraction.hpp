// Extraction: the cheapest graph among equal forms. Approximate, as the exact problem with shared
// nodes is NP-hard.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "rewriter/egraph.hpp"

namespace pw {

struct Extraction {
  std::map<ValueId, ValueId> chosen;  ///< representative → the value that is computed for it
  std::vector<NodeId> nodes;          ///< all that are needed, operands before users
  std::int64_t cost = 0;
};

/// Nothing if some output can only be computed from itself. A node that is needed twice counts
/// once.
std::optional<Extraction> extract(const Graph& graph, const EGraph& equal,
                                  const std::function<std::int64_t(NodeId)>& cost);

}  // namespace pw
