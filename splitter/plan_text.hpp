// plan.json: a plan with the names of what it is about, so that it can be read without its graph,
// compared with another, and bound to a graph again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "splitter/plan.hpp"

namespace pw {

struct PlanDocument {
  struct Piece {  ///< of the step with the same index
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
  Plan plan;  ///< of one that was read, values are numbered as its slots are
  std::vector<Piece> pieces;
  std::vector<Class> classes;
};

PlanDocument describe(const Plan& plan, const StitchedGraph& pieces);
std::string to_json(const PlanDocument& document);

/// What was written reads back to the same, and is written again the same. Fails with a JSON
/// pointer on what is no plan (PW0741), on unknown members (PW0742), and on numbers that no plan
/// has: sizes that do not rise, a slot outside the arena or on another that is alive with it
/// (PW0743). At most 2^20 slots and steps.
Result<PlanDocument> plan_from_json(std::string_view text, const std::string& file);

/// The plan with the values of this graph. Fails where pieces, classes or values differ from those
/// that it was made for (PW0744), and where what it decides is wrong for them (PW0745, see
/// check_memory).
Result<Plan> bind_plan(const PlanDocument& document, const StitchedGraph& pieces,
                       const Graph& source);

/// What differs, a line each, for people; empty where nothing does.
std::vector<std::string> differences(const PlanDocument& a, const PlanDocument& b);

}  // namespace pw
