#include "cli/command_line.hpp"

#include <sstream>

#include <CLI/CLI.hpp>

#include "cli/diagnostic_output.hpp"
#include "cli/help/help_format.hpp"
#include "cli/output.hpp"
#include "cli/parse_mistake.hpp"
#include "cli/session.hpp"
#include "cli/settings.hpp"
#include "cli/watch.hpp"

namespace pw::cli {
namespace {

/// Returns true for options whose value is the path of one output file.
bool names_output(const CLI::Option& option) {
  for (const char* name : {"--output", "--save", "--junit", "--tests", "--diagnostics-to"})
    if (option.check_name(name)) return true;
  return false;
}

/// Rejects an empty value, which would look like an absent option.
std::string refuse_empty(const std::string& value) {
  return value.empty() ? "the value is empty; leave out the option to use its default" : "";
}

/// Sets what applies to every option. Lists are greedy by default, and would consume the positional
/// arguments after them.
void prepare_options(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_positional() || option->get_items_expected_max() == 0) continue;
    option->allow_extra_args(false)->check(refuse_empty);
    if (names_output(*option)) option->each(take_standard_output_for);
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; }))
    prepare_options(*command);
}

/// Prints help to standard output, and a mistake to standard error.
int print_parse_result(const CLI::App& app, const CLI::ParseError& result, const Options& options) {
  std::ostringstream out, error;
  if (app.exit(result, out, error) != 0) {
    report_diagnostics({parse_mistake(app, result)}, SourceMap(), options);
    return kUsage;
  }
  print_out(out.str());
  return kOk;
}

int parse_and_run(CLI::App& app, const Options& options, int argc, char** argv,
                  const std::function<void()>& body) {
  try {
    app.parse(argc, argv);
    body();
  } catch (const CLI::ParseError& result) {
    return print_parse_result(app, result, options);
  } catch (const Exit& early) {
    return early.code;
  }
  return kOk;
}

}  // namespace

void add_common_options(CLI::App& app, Options& options) {
  const OptionsOf output(app, "Output");
  app.add_option("--color", options.color,
                 "color the output: auto, always or never (NO_COLOR is honored)")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN")
      ->configurable();
  add_switch(app, "-q,--quiet", options.quiet, "print no messages except errors");
  app.add_option("--progress", options.progress,
                 "show progress, rate and remaining time: auto (on a terminal, after half a "
                 "second), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN")
      ->configurable();
  add_diagnostic_options(app, options);
  app.add_flag_function(
      "--watch", [](std::int64_t) {},
      "run again whenever an input file changes, until interrupted");
}

int run_command_line(CLI::App& app, const Options& options, int argc, char** argv,
                     const std::function<void()>& body) {
  prepare_options(app);
  lay_out_help(app);
  const auto run = [&] {
    return finish_diagnostics(app.get_name(), parse_and_run(app, options, argc, argv, body),
                              options);
  };
  return wants_watch(argc, argv) ? watch(argc, argv, run) : run();
}

}  // namespace pw::cli
