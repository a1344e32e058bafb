#include "cli/parse_mistake.hpp"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "cli/option_table.hpp"

namespace pw::cli {
namespace {

/// Returns the last recognised command, to which the remaining words belong.
const CLI::App& reached(const CLI::App& program) {
  const CLI::App* command = &program;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  return *command;
}

std::string command_line_of(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return (parent == nullptr ? "" : command_line_of(*parent) + " ") + command.get_name();
}

/// Returns the options of the command and its parents, with dashes.
std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> out;
  for (const CLI::App* at = &command; at != nullptr; at = at->get_parent())
    for (const OptionRow& row : option_rows(*at))
      if (!row.long_name.empty()) out.push_back("--" + row.long_name);
  return out;
}

std::string meant(const std::string& word, const std::vector<std::string>& candidates,
                  const std::string& otherwise) {
  const std::string near = nearest(word, candidates);
  return near.empty() ? otherwise : "did you mean `" + near + "`?";
}

Diagnostic unknown_command(const CLI::App& command, const std::string& word) {
  const std::string line = command_line_of(command);
  return error_at({}, "", "there is no command `" + line + " " + word + "`",
                  meant(word, names_below(command), "`" + line + " --help` lists them"));
}

Diagnostic unknown_option(const CLI::App& command, const std::string& word) {
  const std::string line = command_line_of(command), name = word.substr(0, word.find('='));
  return error_at({}, "", "`" + line + "` has no option `" + name + "`",
                  meant(name, options_of(command), "`" + line + " --help` lists them"));
}

}  // namespace

Diagnostic parse_mistake(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App& command = reached(program);
  const std::string line = command_line_of(command);
  const std::vector<std::string> rest = program.remaining(true);
  const auto is_option = [](const std::string& word) { return word.size() > 1 && word[0] == '-'; };
  const auto option = std::ranges::find_if(rest, is_option);
  const auto word = std::ranges::find_if_not(rest, is_option);
  const bool expects_command = !names_below(command).empty();
  if (option != rest.end()) return unknown_option(command, *option);
  if (word != rest.end() && expects_command) return unknown_command(command, *word);
  if (word != rest.end())
    return error_at({}, "", "`" + line + "` does not expect `" + *word + "`",
                    "`" + line + " --help` shows its usage");
  if (expects_command)
    return error_at({}, "", "`" + line + "` needs a command", "`" + line + " --help` lists them");
  return error_at({}, "", error.what(), "`" + line + " --help` shows its usage");
}

}  // namespace pw::cli
