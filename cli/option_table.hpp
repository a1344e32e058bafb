// The options and commands of a program as rows: what its manual pages, its completions and
// piecewise.toml know of them, read off CLI11's tables, so that there is one list.
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
  std::string long_name;   ///< "rules"; empty: it has none
  std::string short_name;  ///< "r"; empty: it has none
  ValueKind kind = ValueKind::none;
  std::string value;  ///< what stands for the value: FILE, NAME=VALUE, UINT; of a flag empty
  std::vector<std::string> choices;
  std::string initial;  ///< the default, where one is stated
  bool repeatable = false;
  std::string description;
  const CLI::Option* option = nullptr;
};

/// The options of a command, without those that are hidden, in the order in which they were added.
std::vector<OptionRow> option_rows(const CLI::App& command);
/// The positional arguments, likewise; `long_name` is what stands for them.
std::vector<OptionRow> positional_rows(const CLI::App& command);

/// A command and those below it: of `pwr cache stats` the path is {"cache", "stats"}, of the
/// program itself it is empty.
struct CommandRow {
  std::vector<std::string> path;
  const CLI::App* command = nullptr;
};
/// The program first, then each command before those below it.
std::vector<CommandRow> command_rows(const CLI::App& program);
/// "cache stats", or an empty text.
[[nodiscard]] std::string joined(const std::vector<std::string>& path,
                                 const std::string& separator = " ");

/// A check that takes every value and says which there are, where what reads the value says more of
/// a wrong one than CLI11 would.
CLI::Validator offered(const std::vector<std::string>& choices);

}  // namespace pw::cli
