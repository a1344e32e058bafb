// The program pwr.

#include <algorithm>

#include <CLI/CLI.hpp>

#include "base/version.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/config_file.hpp"
#include "cli/guard.hpp"
#include "cli/help/documentation.hpp"
#include "cli/parts/labs.hpp"
#include "cli/parts/libraries.hpp"
#include "cli/settings.hpp"

namespace {

/// The headings of --help, with their commands.
void group_commands(CLI::App& app) {
  const std::pair<const char*, std::vector<const char*>> groups[] = {
      {"Graphs", {"import", "export", "stats", "generate", "diff", "equal"}},
      {"Rules", {"check", "fmt", "test", "verify", "prove", "discover", "fuzz-order"}},
      {"Rewriting", {"opt", "explain", "match", "explore", "extract"}},
      {"Plans and kernels", {"split", "plan", "sizes", "compile", "tune"}},
      {"Running", {"run", "report", "bench", "bisect", "reduce"}},
      {"Editors", {"serve", "lsp", "grammar"}},
      {"This installation", {"ops", "cache", "doctor", "trust", "completion", "man"}},
  };
  for (const auto& [title, names] : groups)
    for (CLI::App* sub : app.get_subcommands({}))
      if (std::find(names.begin(), names.end(), sub->get_name()) != names.end()) sub->group(title);
}

int run(int argc, char** argv) {
  using namespace pw::cli;
  CLI::App app("Piecewise: rewrite tensor dataflow graphs, split them, plan them, run them.",
               "pwr");
  app.require_subcommand(1);
  app.fallthrough();
  refuse_found_values(app);
  Options options;
  options.arguments.assign(argv + 1, argv + argc);
  app.add_option("--format", options.format,
                 "output format: table; json (one document); csv (its tables)")
      ->check(CLI::IsMember({"table", "json", "csv"}))
      ->type_name("FORM")
      ->configurable();
  add_file(app, "--plugin", options.plugins,
           "load a shared library that adds backends, externs of rules, and functions that "
           "run ops; it runs with your permissions");
  add_common_options(app, options);
  app.set_version_flag("--version", std::string("pwr ") + pw::version());
  add_config_options(app, options, true);
  app.footer(
      "Examples:\n"
      "  pwr run model.fx.txt --symbol n=arg0_1.0 -r llm -p o2 --tokens 1,7,300 --check\n"
      "  pwr opt model.json -r llm -p o2 --stats      rewrite, and count the matches of each rule\n"
      "  pwr explain rms_quant model.json -r llm      why did it not match?\n"
      "  pwr check my_rules.pwr && pwr test my_rules.pwr\n"
      "Exit codes: 0 ok, 1 negative answer, 2 usage, 3 invalid input, 4 numeric mismatch, 5 "
      "missing capability, 70 internal error, 130 interrupted.");
  add_graph_commands(app, options);
  add_rule_commands(app, options);
  add_opt_command(app, options);
  add_explain_commands(app, options);
  add_diff_command(app, options);
  add_split_command(app, options);
  add_plan_command(app, options);
  add_sizes_command(app, options);
  add_compile_commands(app, options);
  add_run_commands(app, options);
  add_bench_command(app, options);
  if (labs() != nullptr) labs()->add_commands(app, options);
  add_extract_command(app, options);
  add_cache_commands(app, options);
  add_ops_command(app, options);
  add_library_commands(app, options);
  add_grammar_command(app, options);
  add_doctor_command(app, options);
  add_trust_command(app, options);
  add_documentation_commands(app, options);
  group_commands(app);
  return run_command_line(app, options, argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  return pw::cli::guarded(argc, argv, [&] { return run(argc, argv); });
}
