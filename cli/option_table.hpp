// A program's options and commands as rows, read from CLI11's tables: the single source for manual
// pages, completions, and piecewise.toml.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace pw::cli {

enum class ValueKind {
  none,    ///< a flag
  text,    ///< a value with nothing to offer
  choice,  ///< one of `choices`
  file,
  folder,
};

struct OptionRow {
  std::string long_name;   ///< "rules"; may be empty
  std::string short_name;  ///< "r"; may be empty
  ValueKind kind = ValueKind::none;
  std::string value;  ///< placeholder: FILE, NAME=VALUE, UINT; empty for a flag
  std::vector<std::string> choices;
  std::string initial;  ///< the default, if stated
  bool repeatable = false;
  std::string description;
  const CLI::Option* option = nullptr;
};

/// Returns the visible options of a command, in order of registration.
std::vector<OptionRow> option_rows(const CLI::App& command);
/// Returns the positional arguments; `long_name` is their placeholder.
std::vector<OptionRow> positional_rows(const CLI::App& command);

/// A command and its subcommands. The path of `pwr cache stats` is {"cache", "stats"}, that of the
/// program is empty.
struct CommandRow {
  std::vector<std::string> path;
  const CLI::App* command = nullptr;
};
/// Returns the program first, then each command before its subcommands.
std::vector<CommandRow> command_rows(const CLI::App& program);
/// Returns the names of a command's subcommands.
std::vector<std::string> names_below(const CLI::App& command);
/// Returns "cache stats", or an empty text.
[[nodiscard]] std::string joined(const std::vector<std::string>& path,
                                 const std::string& separator = " ");

/// Returns a validator that documents the choices but accepts every value, for options whose own
/// parser gives better errors than CLI11.
CLI::Validator offered(const std::vector<std::string>& choices);

}  // namespace pw::cli
