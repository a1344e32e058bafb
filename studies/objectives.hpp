// What graphs cost by each objective: counted, planned, modelled, or measured in turns.
#pragma once

#include <vector>

#include "studies/explore_space.hpp"

namespace pw {

/// By graph, in the order of the space's objectives; counts are whole. `source` is the graph before
/// any pass: its inputs are what runs are given. Times are medians over the request's repeats, in
/// which the graphs take turns, so that what else the machine does meets all of them. PW07xx where
/// an objective needs a plan and there is none, PW1405 for a backend that there is not.
Result<std::vector<std::vector<double>>> objectives_of(
    const std::vector<const Graph*>& graphs, const Graph& source, const std::vector<Objective>& by,
    const LoadedRules& rules, const ExploreRequest& request, const Log& log);
/// Whether it is counted, and so the same on every machine.
[[nodiscard]] bool is_whole(Objective objective);

}  // namespace pw
