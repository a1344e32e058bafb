// The only interface of the commands to the labs, which a build may omit (PW_LABS).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/session.hpp"
#include "pipeline/load.hpp"
#include "pipeline/run/compile.hpp"
#include "pipeline/run/run.hpp"

namespace pw::cli {

/// A graph whose numbers failed, kept until all graphs have run.
struct FailedRun {
  Graph input;
  LoadedRules rules;
  std::vector<std::int64_t> tokens;
};
/// Options of `pwr run` that search for the cause of a failure.
struct RunFailureArgs {
  bool check_each = false;
  std::string on_failure, reproducer = "failure.pwr";
  [[nodiscard]] bool wanted() const { return check_each || !on_failure.empty(); }
};
/// Options of `pwr compile` that judge kernels without a device.
struct QualityArgs {
  bool wanted = false;
  std::vector<std::string> functions{"all"};
  std::vector<std::int64_t> widths;
  std::string baseline;
};

struct Labs {
  /// Adds equal, explore, discover, bisect, and reduce.
  void (*add_commands)(CLI::App& app, const Options& options);

  void (*add_run_options)(CLI::App& sub, RunFailureArgs& args);
  /// Compares the graph after each pass, and names the first pass that fails.
  void (*check_passes)(const Session& session, const RunRequest& request, const RunRecord& record,
                       Answer& answer);
  /// Describes the first rewrite after which the numbers fail; empty if none is found.
  std::string (*find_culprit)(const Session& session, const std::string& pipeline,
                              std::uint64_t seed, const FailedRun& failed);
  /// Writes the smallest test that shows the failure.
  void (*reduce_failure)(const Session& session, const RunFailureArgs& args,
                         const RuleSource& rules, std::uint64_t seed, const FailedRun& failed);

  void (*add_quality_options)(CLI::App& sub, QualityArgs& args);
  /// Judges functions of the library at chosen widths; `output`: a page or JSON, or empty.
  void (*judge_functions)(const Session& session, const QualityArgs& args,
                          const CompileRequest& compile, const std::string& output,
                          const std::string& dump);
  /// Judges the kernels of a compilation; writes quality.json and quality.html into its folder.
  void (*judge_plan)(const Session& session, const QualityArgs& args, const CompiledGraph& compiled,
                     const std::string& folder);
};
/// Returns the labs, or null in a build without them.
[[nodiscard]] const Labs* labs();

}  // namespace pw::cli
