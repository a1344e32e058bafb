// Costs of graphs by objective: counted, planned, modeled, or measured in turn.
#pragma once

#include <vector>

#include "studies/explore_space.hpp"

namespace pw {

/// Returns the costs by graph, in the order of the space's objectives; counts are integers.
/// `source` is the graph before any pass and supplies the inputs of runs. Times are medians over
/// interleaved repeats, so that other load affects all graphs alike. Fails with PW07xx if a plan is
/// required but impossible, PW1405 for an unknown backend.
Result<std::vector<std::vector<double>>> objectives_of(
    const std::vector<const Graph*>& graphs, const Graph& source, const std::vector<Objective>& by,
    const LoadedRules& rules, const ExploreRequest& request, const Log& log);
/// Returns true if the objective is a count, and therefore the same on every machine.
[[nodiscard]] bool is_whole(Objective objective);

}  // namespace pw
