// Exports run_command_line.
#include "cli/command_line.hpp"

#include <sstream>

#include <CLI/CLI.hpp>

#include "base/printable.hpp"
#include "cli/output.hpp"
#include "cli/session.hpp"

namespace pw::cli {
namespace {

/// Options whose value is the path of one file that is written.
bool names_output(const CLI::Option& option) {
  for (const char* name : {"--output", "--save", "--junit", "--tests"})
    if (option.check_name(name)) return true;
  return false;
}

/// An empty value would be taken for an absent option.
std::string refuse_empty(const std::string& value) {
  return value.empty() ? "the value is empty; leave the option out for its default" : "";
}

/// What holds for every option. Lists are greedy by default, and would take the positional
/// arguments behind them.
void prepare_options(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_positional() || option->get_items_expected_max() == 0) continue;
    option->allow_extra_args(false)->check(refuse_empty);
    if (names_output(*option)) option->each(take_standard_output_for);
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; }))
    prepare_options(*command);
}

/// Help goes to standard output, a mistake to standard error.
int print_parse_result(const CLI::App& app, const CLI::ParseError& result) {
  std::ostringstream out, error;
  const int code = app.exit(result, out, error);
  print_out(out.str());
  print_error(printable_lines(error.str()));
  return code == 0 ? kOk : kUsage;
}

}  // namespace

int run_command_line(CLI::App& app, int argc, char** argv, const std::function<void()>& body) {
  prepare_options(app);
  try {
    app.parse(argc, argv);
    body();
  } catch (const CLI::ParseError& result) {
    return print_parse_result(app, result);
  } catch (const Exit& early) {
    return early.code;
  }
  return kOk;
}

}  // namespace pw::cli
