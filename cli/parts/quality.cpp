#include "cli/parts/quality.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "base/printable.hpp"
#include "cli/help/help_format.hpp"
#include "cli/output.hpp"
#include "cli/settings.hpp"
#include "kernel_reports/kernel_quality.hpp"

namespace pw::cli {
namespace {

constexpr std::int64_t kTokens = 4096;  // where none are given

/// Prints a report and its differences from the baseline; exits with 1 if there are any.
void print_report(const Session& session, const QualityArgs& args, const QualityReport& report) {
  const Answer answer = quality_answer(report);
  print_out(session.json() ? printable_json(to_json(answer))
                           : answer.print(session.options.format));
  session.say(fmt::format("{} assessed, {} with a shortcoming",
                          counted(report.rows.size(), "kernel"), report.short_rows()));
  if (args.baseline.empty()) return;
  const std::string baseline = session.need(read_file(args.baseline));
  const std::vector<std::string> changes =
      session.need(quality_changes(report, baseline, args.baseline, session.log()));
  for (const std::string& change : changes) session.say(change);
  if (!changes.empty())
    session.die(fmt::format("{} from the baseline", counted(changes.size(), "difference")),
                "if the differences are intended, update it with -o " + args.baseline, kNegative);
  session.say("no difference from the baseline");
}

std::string known_functions() {
  std::vector<std::string_view> names;
  for (const QualityFunction& f : quality_functions()) names.push_back(f.name);
  return fmt::format("all, or any of {}", fmt::join(names, ", "));
}

}  // namespace

void add_quality_options(CLI::App& app, QualityArgs& args) {
  args.widths = quality_widths();
  const OptionsOf group(app, "Quality");
  add_switch(app, "--quality", args.wanted,
             "assess each kernel without a GPU: registers, occupancy, instructions, bytes; "
             "without a graph, assess the kernels of common model functions");
  app.add_option("--functions", args.functions, "without a graph: " + known_functions())
      ->type_name("NAMES")
      ->delimiter(',')
      ->capture_default_str()
      ->configurable();
  app.add_option("--widths", args.widths, "without a graph: row widths, in columns")
      ->type_name("LIST")
      ->delimiter(',')
      ->capture_default_str()
      ->configurable();
  add_setting(app, "--baseline", args.baseline, "FILE.json",
              "compare with a file written by --quality -o FILE.json; exit with 1 if they differ");
}

void judge_functions(const Session& session, const QualityArgs& args, const CompileRequest& compile,
                     const std::string& output, const std::string& dump) {
  QualityRequest request;
  request.dump = dump;
  if (args.functions != std::vector<std::string>{"all"}) request.functions = args.functions;
  request.widths = args.widths;
  request.archs = compile.archs;
  request.strict = compile.strict;
  request.sources_only = compile.sources_only;
  request.tokens = compile.tokens > 0 ? compile.tokens : kTokens;
  const QualityReport report = session.need(pw::judge_functions(request, session.log()));
  if (!output.empty())
    session.need(write_file(output, output.ends_with(".json")
                                        ? printable_json(to_json(quality_answer(report)))
                                        : quality_page(report, "Kernels without a device")));
  print_report(session, args, report);
}

void judge_plan(const Session& session, const QualityArgs& args, const CompiledGraph& compiled,
                const std::string& folder) {
  const QualityReport report = judge_compiled(compiled, compiled.tokens, session.log());
  session.need(
      write_file(folder + "/quality.json", printable_json(to_json(quality_answer(report)))));
  session.need(write_file(folder + "/quality.html", quality_page(report, "Kernels of the plan")));
  print_report(session, args, report);
}

}  // namespace pw::cli
