#include "cli/help/documentation.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>

#include "base/io/file.hpp"
#include "cli/help/completion.hpp"
#include "cli/help/manual.hpp"

namespace pw::cli {
namespace {

struct DocumentationArgs {
  std::string shell, command, output = "-";
};

void run_man(const CLI::App& program, const Options& options, const DocumentationArgs& args) {
  const Session session(options);
  session.refuse_json("manual pages are roff");
  const std::vector<ManualPage> pages = manual_pages(program);
  if (args.output != "-") {
    std::error_code ignored;  // reported by the first file that cannot be written
    std::filesystem::create_directories(args.output, ignored);
    for (const ManualPage& page : pages)
      session.need(write_file(args.output + "/" + page.name + ".1", page.text));
    return;
  }
  const std::string name =
      program.get_name() + (args.command.empty() ? std::string() : "-" + args.command);
  for (const ManualPage& page : pages)
    if (page.name == name) return print_out(page.text);
  std::vector<std::string> names;
  for (const CLI::App* below : program.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(below->get_name());
  const std::string near = nearest(args.command, names);
  session.die("there is no command `" + args.command + "`",
              near.empty() ? "pwr --help lists them" : "did you mean `" + near + "`?", kUsage);
}

}  // namespace

void add_documentation_commands(CLI::App& program, const Options& options) {
  auto args = std::make_shared<DocumentationArgs>();
  auto* sub = program.add_subcommand("completion", "Print the completion script for a shell");
  sub->add_option("shell", args->shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember(kShells));
  sub->add_option("-o,--output", args->output, "the file to write; - is standard output")
      ->capture_default_str();
  sub->footer(
      "Examples:\n"
      "  source <(pwr completion bash)          for this shell\n"
      "  pwr completion zsh -o ~/.zfunc/_pwr\n"
      "  pwr completion fish -o ~/.config/fish/completions/pwr.fish\n"
      "pwviz --completion SHELL prints the script for pwviz.");
  sub->callback([args, &options, &program] {
    const Session session(options);
    session.refuse_json("a completion is a script");
    session.need(write_file(args->output, completion_script(program, args->shell)));
  });

  auto pages = std::make_shared<DocumentationArgs>();
  sub = program.add_subcommand("man", "Print the manual page of the program or of a command");
  sub->add_option("command", pages->command, "the command; default: the program");
  sub->add_option("-o,--output", pages->output, "write all pages to this folder")
      ->type_name("DIR")
      ->default_str("");
  sub->footer("Examples:\n  pwr man run | man -l -\n  pwr man -o ~/.local/share/man/man1");
  sub->callback([pages, &options, &program] { run_man(program, options, *pages); });
}

void add_documentation_options(CLI::App& program) {
  const auto print = [](const std::string& text) {
    print_out(text);
    throw Exit{kOk};
  };
  program
      .add_option_function<std::string>(
          "--completion",
          [&program, print](const std::string& shell) { print(completion_script(program, shell)); },
          "print the completion script for a shell, and exit")
      ->check(CLI::IsMember(kShells));
  program.add_flag_callback(
      "--man", [&program, print] { print(manual_pages(program).front().text); },
      "print the manual page, and exit");
}

}  // namespace pw::cli
