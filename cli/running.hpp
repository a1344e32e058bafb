// What `pwr run` did, gathered for its tables and its report.
#pragma once

#include <optional>
#include <vector>

#include "backends/cpu/cpu.hpp"
#include "cli/planning.hpp"
#include "cli/rewriting.hpp"
#include "verify/numeric.hpp"
#include "viz/viz.hpp"

namespace pw::cli {

struct StepRun {
  StepReport report;
  std::vector<NumericReport> numbers;  ///< with --check: one a rank
  [[nodiscard]] bool failed() const;
};

struct RunRecord {
  std::string command, graph_path, backend;
  std::uint64_t seed = 0;
  std::int64_t ranks = 1;
  std::optional<CpuReport> cpu;  ///< of that backend
  bool collectives = false;      ///< on one rank they run as the identity
  std::vector<Version> versions;
  RewriteReport rewrite;
  std::optional<StitchedGraph> pieces;
  Plan plan;
  std::vector<StepRun> steps;
};

Table step_table(const RunRecord& record);
Table number_table(const RunRecord& record);
/// Steps whose numbers failed.
std::size_t failed_steps(const RunRecord& record);

/// report.html, report.txt, passes.html, plan.json and journal.jsonl; returns the path of
/// report.html.
std::string write_report(const Session& session, const RunRecord& record, const RuleSet& rules,
                         const std::string& folder);

}  // namespace pw::cli
