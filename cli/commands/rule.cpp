#include <CLI/CLI.hpp>

#include "base/io/file.hpp"
#include "base/io/file_kind.hpp"
#include "cli/commands.hpp"
#include "cli/settings.hpp"
#include "pipeline/format.hpp"
#include "pipeline/report/table.hpp"

namespace pw::cli {
namespace {

struct FormatArgs {
  std::vector<std::string> files;
  bool check = false, to_stdout = false;
};

void run_format(const Options& options, const FormatArgs& args) {
  Session session(options);
  if (args.to_stdout) session.refuse_json("--stdout prints rules");
  std::vector<std::string> changed;
  for (const std::string& path : args.files) {
    const std::string text = session.need(read_text_file(path, "a rule file (.pwr)"));
    const auto [formatted, differs] = session.need(format_rules(session.context, path, text));
    if (differs) changed.push_back(path);
    if (args.to_stdout || path == "-") {
      session.refuse_json("rules from standard input are printed as rules");
      print_out(formatted);
    } else if (args.check) {
      if (differs && !session.json()) print_out(path + "\n");
    } else if (differs) {
      session.need(write_file(path, formatted));
      session.say("formatted " + path);
    }
  }
  if (session.json()) print_out(to_json(changed));
  if (args.check && !changed.empty()) throw Exit{kNegative};
}

}  // namespace

void add_rule_commands(CLI::App& app, const Options& options) {
  add_check_command(app, options);
  add_fuzz_command(app, options);

  auto format = std::make_shared<FormatArgs>();
  auto* sub = app.add_subcommand("fmt", "Format rule files in place");
  sub->add_option("files", format->files,
                  "rule files (.pwr); - reads standard input and writes standard output")
      ->required();
  add_switch(*sub, "--check", format->check,
             "list the files that are not formatted and exit with 1, without changing them");
  add_switch(*sub, "--stdout", format->to_stdout, "print the result instead of writing the file");
  sub->footer("Examples:\n  pwr fmt rules/*.pwr\n  pwr fmt --check rules/*.pwr");
  sub->callback([format, &options] { run_format(options, *format); });

  add_test_command(app, options);

  add_verify_command(app, options);
  add_prove_command(app, options);
}

}  // namespace pw::cli
