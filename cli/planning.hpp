// The options of the splitter and the planner.
#pragma once

#include <string>

#include "cli/session.hpp"
#include "pipeline/plan.hpp"

namespace pw::cli {

/// Raw option values; `request` parses the lists.
struct PlanArgs {
  PlanRequest stated;
  std::string fold = "auto", ranges, sizes, compile_sizes, loras;
  void add_to(CLI::App& app);
  [[nodiscard]] PlanRequest request(const Session& session) const;
};

/// The common input of split, plan, compile, and tune.
struct SplitArgs {
  GraphOptions graph;
  RuleOptions rules;
  PlanArgs plan;
  std::string output;
};
CutGraph prepared(const Session& session, const SplitArgs& args);

}  // namespace pw::cli
