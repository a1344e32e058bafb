// The record of a run, for its tables, its report and its dump.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/cpu.hpp"
#include "engines/step_engine.hpp"
#include "pipeline/judge/run_proof.hpp"
#include "pipeline/report/table.hpp"
#include "pipeline/variants.hpp"
#include "splitter/plan.hpp"
#include "verify/expected.hpp"
#include "verify/numeric.hpp"

namespace pw {

struct StepRun {
  StepReport report;
  std::vector<NumericReport> numbers;   ///< compared with the unrewritten graph: one for each rank
  std::vector<ExpectedCheck> expected;  ///< compared with another system's outputs
  std::vector<Tensor> outputs;          ///< of rank 0, where they are kept
  [[nodiscard]] bool failed() const;
};

/// Tokens of generated steps.
struct GeneratedTokens : Generation {
  std::vector<std::int64_t> sequences;  ///< numbers of the sequences
};

struct RunRecord {
  /// A file that was read, with the name that the user gave.
  struct File {
    std::string name, what, sha256;
  };
  std::string command;  ///< that reproduces the run
  std::string graph_path, backend;
  std::string variant;  ///< see GraphVariant
  std::vector<File> files;
  bool executed = false;  ///< otherwise only rewritten, split and planned
  bool captures = true;   ///< the backend records what the plan captures
  bool fuse = true;       ///< neighbouring row ops are one kernel
  bool times = false;     ///< include times in the report, which then varies
  std::uint64_t seed = 0;
  std::int64_t ranks = 1;
  std::optional<CpuReport> cpu;  ///< of that backend
  bool collectives = false;      ///< on one rank they run as the identity
  std::vector<Version> versions;
  RewriteReport rewrite;
  std::optional<RunProof> proof;  ///< of its rewrites, if requested
  std::optional<Graph> at_load;   ///< weight-only computations
  std::optional<StitchedGraph> pieces;
  Plan plan;
  std::vector<StepRun> steps;
  std::optional<GeneratedTokens> generated;                 ///< after the steps, if requested
  std::vector<std::pair<std::string, std::size_t>> device;  ///< counters of a device, by name
  std::vector<KernelSource> kernels;                        ///< that it launches
  std::vector<BuildTime> build_times;                       ///< before the first step
  std::string arch, schedules;                              ///< of it: "sm_90"; see EngineOptions
  std::string culprit;  ///< the first rewrite that makes the numbers fail, as lines; may be empty
  std::string next_command;  ///< that finds the cause of a failure; may be empty
};

/// Returns the number of steps whose numbers failed.
[[nodiscard]] std::size_t failed_steps(const RunRecord& record);

/// Omits columns that vary from run to run unless `times` is set.
[[nodiscard]] Table pass_table(const RewriteReport& report, bool times = true);
[[nodiscard]] Table rule_table(const RewriteReport& report, bool times = true);
[[nodiscard]] Table piece_table(const StitchedGraph& pieces);
[[nodiscard]] Table step_table(const RunRecord& record, bool times = true);
[[nodiscard]] Table number_table(const RunRecord& record);
/// Returns decisions within rounding error for which the rewritten run differs from the reference.
[[nodiscard]] Table tie_table(const RunRecord& record);
[[nodiscard]] Table expected_table(const RunRecord& record);
/// Merges the tables of all variants; rows start with the variant's name if there are names.
[[nodiscard]] Table joined(const std::vector<std::pair<std::string, Table>>& tables);

}  // namespace pw
