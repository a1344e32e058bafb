// plan.json: a plan with the names of its values and pieces, so that it can be read without its
// graph, compared with another plan, and bound to a graph again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "splitter/plan.hpp"

namespace pw {

struct PlanDocument {
  struct Piece {  ///< piece of the step with the same index
    std::string name;
    std::size_t nodes = 0;
    std::vector<std::string> inputs, outputs;  ///< names of values
    friend bool operator==(const Piece&, const Piece&) = default;
  };
  struct Class {
    std::string name;
    std::uint64_t hash = 0;
    bool splitting = false;
    std::vector<std::string> pieces;
    friend bool operator==(const Class&, const Class&) = default;
  };
  Plan plan;  ///< after reading, values are numbered in the order of the slots
  std::vector<Piece> pieces;
  std::vector<Class> classes;
};

PlanDocument describe(const Plan& plan, const StitchedGraph& pieces);
std::string to_json(const PlanDocument& document);

/// Reads a plan. A plan that was written reads back equal and is written identically. Fails with a
/// JSON pointer on text that is not a plan (PW0741), on unknown members (PW0742), and on invalid
/// numbers (PW0743), such as sizes that do not rise, a slot outside the arena, or overlapping live
/// slots. At most 2^20 slots and steps.
Result<PlanDocument> plan_from_json(std::string_view text, const std::string& file);

/// Returns the plan with the values of this graph. Fails with PW0744 if pieces, classes or values
/// differ from those of the plan, and with PW0745 if its decisions are wrong for the graph (see
/// check_memory).
Result<Plan> bind_plan(const PlanDocument& document, const StitchedGraph& pieces,
                       const Graph& source);

/// Returns the differences, one line each, for people; empty if there are none.
std::vector<std::string> differences(const PlanDocument& a, const PlanDocument& b);

}  // namespace pw
