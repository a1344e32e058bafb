#include "pipeline/check/check.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "cli/commands.hpp"
#include "cli/settings.hpp"

namespace pw::cli {
namespace {

struct CheckArgs {
  std::vector<std::string> files;
  std::string format, tests;
  bool no_analysis = false, no_proof = false, order = false, all = false;
};

/// Prints the rules in the order in which they enable each other.
void print_order(const RuleSet& rules, const std::string& format) {
  print_out(format == "dot" ? order_dot(rules) : order_table(rules).print(format));
}

void say_proofs(Session& session, const CheckedRules& checked) {
  if (const std::string line = proofs_line(checked); !line.empty()) session.say(line);
}

/// Prints everything, and returns the number of warnings.
std::size_t print_all(Session& session, const CheckedRules& checked, const std::string& format) {
  const Diagnostics warnings = checked.warnings();
  session.report(warnings);
  say_proofs(session, checked);
  print_out(format == "json" ? check_to_json(checked) : check_table(checked).print(format));
  for (const std::string& line : scope_lines(checked.report)) session.say(line);
  return warnings.size();
}

/// Prints what concerns the named files, and counts what concerns the library that they use.
/// Returns the number of warnings about both.
std::size_t print_own(Session& session, const CheckedRules& checked) {
  const OwnParts own = own_parts(checked);
  session.report(own.warnings);
  say_proofs(session, checked);
  print_out(own.table.print("table"));
  for (const std::string& line : own.scope) session.say(line);
  if (own.rows > 0)
    session.say(
        fmt::format("left out: {} and {} of the built-in library, which --all judges and prints",
                    counted(own.rows, "row"), counted(own.left_out, "warning")));
  return own.warnings.size() + own.left_out;
}

void run_check(const Options& options, const CheckArgs& args) {
  Session session(options);
  const std::string& format = args.format.empty() ? options.format : args.format;
  const bool whole = !args.no_analysis && !args.order;
  Result<CheckedRules> loaded = check_rule_files(
      session.context, {args.files, whole, whole && !args.no_proof, args.all}, session.log());
  if (!loaded && format == "json")
    print_out(mistakes_to_json(loaded.error(), session.context->sources));
  const CheckedRules checked = session.need(std::move(loaded));
  if (args.order) return print_order(checked.rules, format);
  if (!args.tests.empty())
    session.need(write_file(args.tests, finding_tests(checked.report, args.files)));
  const std::size_t warnings = args.all || format != "table" ? print_all(session, checked, format)
                                                             : print_own(session, checked);
  session.say(fmt::format("{}, {}, {}, {}, {}", counted(checked.rules.rules.size(), "rule"),
                          counted(checked.rules.passes.size(), "pass"),
                          counted(checked.rules.pipelines.size(), "pipeline"),
                          counted(session.context->ops.size(), "op"),
                          counted(warnings, "warning")));
}

}  // namespace

void add_check_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<CheckArgs>();
  auto* sub =
      app.add_subcommand("check", "Check rule files, report all errors, and list their contents");
  sub->add_option("files", args->files, "rule files (.pwr)")->required();
  add_switch(*sub, "--no-analysis", args->no_analysis,
             "skip the search for rules that compete for nodes, rules that never fire, and "
             "passes that may not terminate");
  add_switch(*sub, "--no-proof", args->no_proof,
             "skip the proofs that rules preserve the results (implied by --no-analysis)");
  add_switch(*sub, "--order", args->order,
             "only print the rules, in the order in which they enable each other");
  add_switch(*sub, "--all", args->all,
             "also judge and print the built-in rules that the files use");
  add_file(*sub, "--tests", args->tests, "write the graphs of the warnings to this file as tests");
  sub->add_option("--format", args->format,
                  "output format: table, json or csv; with --order also dot")
      ->check(CLI::IsMember({"table", "json", "csv", "dot"}))
      ->configurable();
  sub->footer(
      "Examples:\n  pwr check my_rules.pwr\n  pwr check my_rules.pwr --tests found.pwr && pwr test "
      "found.pwr\n  pwr check my_rules.pwr --order --format dot | dot -Tsvg > rules.svg");
  sub->callback([args, &options] { run_check(options, *args); });
}

}  // namespace pw::cli
