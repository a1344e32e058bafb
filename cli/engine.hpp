// The options of run, report, and bench that choose steps and engine.
#pragma once

#include <string>

#include "cli/planning.hpp"
#include "pipeline/run/execution.hpp"

namespace pw::cli {

/// Raw option values; `fill` parses the lists.
struct EngineArgs {
  GraphOptions graph;
  RuleOptions rules;
  PlanArgs plan;
  ExecutionRequest stated;
  std::string tokens, ends, grouping = "auto";
  void add_to(CLI::App& app, bool graph_required = true);
  /// Adds the options for steps that choose their tokens.
  void add_generation(CLI::App& app);
  void fill(const Session& session, ExecutionRequest& request) const;
};

}  // namespace pw::cli
