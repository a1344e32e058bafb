// The invariants between the numbers of a plan, wherever it comes from.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "splitter/plan.hpp"

namespace pw {

struct Contradiction {
  std::string at;  ///< a JSON pointer into plan.json
  std::string message;
};

/// Ranges and sizes end with the most tokens, 0 is a number of adapters, each capture is of a size
/// and of adapters that the plan has and is there once, and no two places that are alive at once
/// share a byte. Empty for every plan that make_plan makes. O(n log n) in the slots.
std::vector<Contradiction> contradictions(const Plan& plan);

/// Whether the plan, bound to this graph, has a place for each of its values: large enough, and no
/// other's as long as the graph needs it, whatever the plan itself says. PW0745. What a piece needs
/// between its launches is for the backend to compare.
Result<std::monostate> check_memory(const Plan& plan, const StitchedGraph& pieces,
                                    const Graph& source);

}  // namespace pw
