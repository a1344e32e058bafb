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

/// Whether the plan, bound to this graph, has a slot for each of its values that is large enough
/// and not shared during the lifetime that the graph requires, whatever the plan states. PW0745.
/// The backend checks the scratch of pieces.
Status check_memory(const Plan& plan, const StitchedGraph& pieces, const Graph& source);

}  // namespace pw
