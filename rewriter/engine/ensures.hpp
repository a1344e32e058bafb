// Evaluates `ensures`: `nodes` and `count(op)` are numbers of the graph, all other names are
// params.
#pragma once

#include <string>

#include "graph/build.hpp"

namespace pw {

struct Ensured {
  Truth truth = Truth::unknown;
  std::string
      values;  ///< "count(all_reduce) is 2, nodes is 17": the values that the statement reads
  std::vector<NodeId> counted;  ///< the nodes that `count(op)` counts, in order
};

Result<Ensured> check_ensures(const Graph& graph, const Expr& statement, const Env& params);

}  // namespace pw
