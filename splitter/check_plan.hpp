// Invariants between the numbers of a plan, whatever its source.
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

/// Returns violations: ranges and sizes must end with the maximum tokens; adapter counts must
/// include 0; each capture must have a size and adapter count of the plan, once; places alive at
/// the same time must not share a byte. Empty for every plan of make_plan. O(n log n) in the slots.
std::vector<Contradiction> contradictions(const Plan& plan);

/// Checks that the plan has a large enough slot for each value of the graph, unshared during the
/// lifetime that the graph requires, whatever lifetime the plan states. Fails with PW0745. The
/// backend checks the scratch of pieces.
Status check_memory(const Plan& plan, const StitchedGraph& pieces, const Graph& source);

}  // namespace pw
