// What `pwr run` did, gathered for its tables and its report.
#pragma once

#include <optional>
#include <vector>

#include "backends/cpu/cpu.hpp"
#include "cli/planning.hpp"
#include "cli/rewriting.hpp"
#include "verify/expected.hpp"
#include "verify/numeric.hpp"
#include "viz/viz.hpp"

namespace pw::cli {

struct StepRun {
  StepReport report;
  std::vector<NumericReport> numbers;   ///< with --check: one a rank
  std::vector<ExpectedCheck> expected;  ///< with --expect
  [[nodiscard]] bool failed() const;
};

struct RunRecord {
  /// A file that was read, as it was named.
  struct File {
    std::string name, what, sha256;
  };
  std::string command, graph_path, backend;
  std::vector<File> files;
  bool executed = false;  ///< else only rewritten, split and planned
  bool times = false;     ///< wanted in the report, which is not the same bytes each time then
  std::uint64_t seed = 0;
  std::int64_t ranks = 1;
  std::optional<CpuReport> cpu;  ///< of that backend
  bool collectives = false;      ///< on one rank they run as the identity
  std::vector<Version> versions;
  RewriteReport rewrite;
  std::optional<StitchedGraph> pieces;
  Plan plan;
  std::vector<StepRun> steps;
  std::vector<std::pair<std::string, std::size_t>> device;  ///< what was counted on one, by name
};

Table step_table(const RunRecord& record, bool times = true);
Table number_table(const RunRecord& record);
Table expected_table(const RunRecord& record);
/// Steps whose numbers failed.
std::size_t failed_steps(const RunRecord& record);

/// The report as a page with the graphs of all passes, and as text.
std::string page_of(const Session& session, const RunRecord& record, const RuleSet& rules);
std::string text_of(const Session& session, const RunRecord& record, const RuleSet& rules);
/// report.html, report.txt, plan.json and journal.jsonl; returns the path of report.html.
std::string write_report(const Session& session, const RunRecord& record, const RuleSet& rules,
                         const std::string& folder);

}  // namespace pw::cli
