#include "cli/parts/labs.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "base/io/shown_path.hpp"
#include "cli/commands.hpp"
#include "cli/parts/quality.hpp"
#include "cli/settings.hpp"
#include "failures/bisect.hpp"
#include "failures/check_each.hpp"
#include "failures/reduce.hpp"
#include "pipeline/check/check.hpp"

namespace pw::cli {
namespace {

void add_commands(CLI::App& app, const Options& options) {
  add_explore_command(app, options);
  add_equal_command(app, options);
  add_discover_command(app, options);
  add_failure_commands(app, options);
}

void add_run_options(CLI::App& sub, RunFailureArgs& args) {
  add_switch(sub, "--check-each", args.check_each,
             "also check the graph after each pass, and report the first that fails");
  CLI::Option* on_failure =
      sub.add_option(
             "--on-failure", args.on_failure,
             "reduce: if a check fails, minimise the graph and its rules, and write them as a test")
          ->check(CLI::IsMember({"reduce"}));
  sub.add_option("--reproducer", args.reproducer, "file for the test of --on-failure")
      ->type_name("FILE")
      ->needs(on_failure)
      ->capture_default_str();
}

void check_passes(const Session& session, const RunRequest& request, const RunRecord& record,
                  Answer& answer) {
  const auto checks = session.need(check_each_pass(request, record, session.log()));
  answer.add("checks", pass_check_table(checks));
  if (const PassCheck* first = first_failing(checks); first != nullptr)
    session.say(fmt::format(
        "{} is the first pass after which the numbers fail, at {}: {}; `pwr bisect` finds "
        "the rewrite",
        first->pass, counted(first->tokens, "token"), first->reason));
}

std::string find_culprit(const Session& session, const std::string& pipeline, std::uint64_t seed,
                         const FailedRun& failed) {
  BisectRequest request;
  request.pipeline = pipeline;
  request.failure.tokens = failed.tokens;
  request.failure.seed = seed;
  auto found = bisect(failed.input, failed.rules, request, session.log());
  if (!found || !found->culprit) return {};
  found->culprit->place = shown_path(found->culprit->place);  // for a report, which others read
  return bisect_text(*found);
}

void reduce_failure(const Session& session, const RunFailureArgs& args, const RuleSource& rules,
                    std::uint64_t seed, const FailedRun& failed) {
  ReduceRequest request;
  request.pipeline = rules.pipeline;
  request.files = rules.rules;
  request.failure.tokens = failed.tokens;
  request.failure.seed = seed;
  const Result<ReduceOutcome> found = reduce(failed.input, failed.rules, request, session.log());
  if (!found) return session.report(found.error());  // the failure of the run is already reported
  if (!found->fails)
    return session.say(
        "nothing to reduce: the whole graph passes on the eager engine with seeded inputs");
  session.need(
      write_file(args.reproducer, with_relative_uses(found->test, rules.rules, args.reproducer)));
  session.say(fmt::format("{} and {} reproduce the failure: {}", counted(found->nodes, "node"),
                          fmt::join(found->rules, ", "), args.reproducer));
}

constexpr Labs kLabs = {add_commands,   add_run_options,     check_passes,    find_culprit,
                        reduce_failure, add_quality_options, judge_functions, judge_plan};

}  // namespace

const Labs* labs() { return &kLabs; }

}  // namespace pw::cli
