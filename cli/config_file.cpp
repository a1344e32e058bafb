#include "cli/config_file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/try.hpp"
#include "cli/config_value.hpp"
#include "cli/option_table.hpp"
#include "pipeline/trust.hpp"

namespace pw::cli {
namespace {

constexpr const char* kOtherProgram = "pwviz";  // pwr ignores its table

constexpr const char* kTrust = "trust";  // the command that grants trust reads no file

/// Options about the command line itself, which a file cannot set.
constexpr std::array<std::string_view, 7> kOfCommandLine = {
    "config", "no-config", "help", "version", "man", "completion", "watch"};

/// Finds the file in this folder or the nearest parent; a relative path, or empty.
std::string found_file() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path here = fs::current_path(error);
  std::string up;
  for (fs::path folder = here; !error && !folder.empty(); folder = folder.parent_path()) {
    if (fs::is_regular_file(up + kConfigName, error)) return up + kConfigName;
    error.clear();
    if (folder == folder.parent_path()) break;
    up += "../";
  }
  return {};
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

/// Returns true if this user or the system owns the file.
bool belongs_here(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && (info.st_uid == ::geteuid() || info.st_uid == 0);
}

/// Which options a file may set, and the hint for the others.
struct Access {
  bool all = true;        ///< false: only what is `configurable`
  std::string help = {};  ///< for a rejected value
};

Access found_access(const std::string& path, Trust trust) {
  const std::string folder = folder_of(path);
  return {trust == Trust::in_force,
          fmt::format("{}if you trust it, run `pwr trust {}` once, or pass --config {}",
                      trust == Trust::changed ? "it has changed since it was trusted; " : "",
                      folder.empty() ? "." : folder, path)};
}

bool asks_for_help(const CLI::App& app) {
  for (const CLI::Option* option : {app.get_help_ptr(), app.get_version_ptr()})
    if (option != nullptr && option->count() > 0) return true;
  return std::ranges::any_of(app.get_subcommands(),
                             [](const CLI::App* below) { return asks_for_help(*below); });
}

/// The values of an option in the file, and their location.
struct Setting {
  OptionRow row;
  std::vector<std::string> values;
  Span span;
  std::vector<std::string> arguments = {};  ///< the same as words of a command
};

class StrictConfig final : public CLI::Config {
 public:
  StrictConfig(CLI::App& program, Options& options, bool has_commands)
      : program_(program), options_(options), has_commands_(has_commands) {}

  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return {}; }
  /// Reads the file here, to get locations; the stream of CLI11 remains unread.
  std::vector<CLI::ConfigItem> from_config(std::istream&) const override {
    const CLI::Option& named = *program_.get_config_ptr();
    if (program_["--no-config"]->count() > 0 || asks_for_help(program_) || trusts()) return {};
    const auto path = named.as<std::string>();
    const Session session(options_);
    const auto text = read_config(path);
    Trust trust = named.count() > 0 ? Trust::in_force : Trust::none;
    if (text && trust == Trust::none) trust = trust_of(folder_of(path), *text);
    if (trust != Trust::in_force && !belongs_here(path)) {
      session.say(path + " is ignored, because it belongs to another user; --config " + path +
                  " reads it");
      return {};
    }
    take(session, path, session.need(text, kUsage), found_access(path, trust));
    return {};
  }

 private:
  /// Returns true for the command that grants trust to a file.
  [[nodiscard]] bool trusts() const {
    return std::ranges::any_of(program_.get_subcommands(),
                               [](const CLI::App* c) { return c->get_name() == kTrust; });
  }
  void take(const Session& session, const std::string& path, const std::string& text,
            Access access) const;

  CLI::App& program_;
  Options& options_;
  bool has_commands_;
};

/// One reading of one file.
class Taking {
 public:
  Taking(const CLI::App& program, std::string folder, Access access)
      : program_(program), folder_(std::move(folder)), access_(std::move(access)) {
    const CLI::App* at = &program;
    while (at != nullptr) {
      selected_.push_back(at);
      const auto below = at->get_subcommands();
      at = below.empty() ? nullptr : below.front();
    }
  }

  Diagnostics errors;
  std::vector<Setting> settings;            ///< of the commands that run, one for an option
  std::vector<std::string> untrusted = {};  ///< options that were rejected for lack of trust

  /// Reads keys outside all tables: for the program, or for every command with the option.
  void top_level(const std::vector<ConfigValue>& values) {
    std::vector<const ConfigValue*> tables;
    for (const ConfigValue& value : values) {
      if (command_named(program_, value) != nullptr)
        tables.push_back(&value);
      else if (value.kind != ConfigValue::Kind::table || value.key != kOtherProgram)
        everywhere(value);
    }
    for (const ConfigValue* value : tables) table(*command_named(program_, *value), value->table);
  }
  /// Reads keys of a command's table, and the tables of its subcommands.
  void table(const CLI::App& command, const std::vector<ConfigValue>& values) {
    const std::vector<OptionRow> rows = option_rows(command);
    for (const ConfigValue& value : values) {
      if (const CLI::App* below = command_named(command, value)) {
        table(*below, value.table);
      } else if (const OptionRow* row = find(rows, value.key)) {
        set(*row, value, is_selected(command));
      } else {
        refuse_unknown(value, rows, command);
      }
    }
  }

 private:
  static const CLI::App* command_named(const CLI::App& command, const ConfigValue& value) {
    if (value.kind != ConfigValue::Kind::table) return nullptr;
    for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; }))
      if (below->get_name() == value.key) return below;
    return nullptr;
  }
  static const OptionRow* find(const std::vector<OptionRow>& rows, const std::string& key) {
    for (const OptionRow& row : rows)
      if (row.long_name == key) return &row;
    return nullptr;
  }
  [[nodiscard]] bool is_selected(const CLI::App& command) const {
    return std::ranges::find(selected_, &command) != selected_.end();
  }

  /// Prefers the program's options; otherwise those of the command that runs, if the value fits:
  /// commands may have different options with the same name.
  void everywhere(const ConfigValue& value) {
    std::vector<OptionRow> all, same;
    std::optional<OptionRow> selected;
    for (const CommandRow& command : command_rows(program_)) {
      const std::vector<OptionRow> rows = option_rows(*command.command);
      all.insert(all.end(), rows.begin(), rows.end());
      const OptionRow* row = find(rows, value.key);
      if (row == nullptr) continue;
      same.push_back(*row);
      if (is_selected(*command.command)) selected = *row;
      if (command.path.empty()) break;
    }
    if (same.empty()) return refuse_unknown(value, all, program_);
    const bool fits_some =
        std::ranges::any_of(same, [&](const OptionRow& row) { return fits(row, value); });
    if (selected && !may_set(*selected))
      set(*selected, value, true);
    else if (!fits_some)
      set(same.front(), value, false);
    else if (selected && fits(*selected, value))
      set(*selected, value, true);
  }
  /// Returns true if the value fits the option; discards errors.
  bool fits(const OptionRow& row, const ConfigValue& value) {
    Diagnostics before = errors;
    std::vector<std::string> ignored;
    const bool out = may_set(row) && convert(row, value, ignored);
    errors = std::move(before);
    return out;
  }

  void refuse_unknown(const ConfigValue& value, const std::vector<OptionRow>& rows,
                      const CLI::App& command) {
    std::vector<std::string> names;
    for (const OptionRow& row : rows) names.push_back(row.long_name);
    const bool table = value.kind == ConfigValue::Kind::table;
    if (table)
      for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(below->get_name());
    const std::string near = nearest(value.key, names);
    const std::string of = &command == &program_ ? "" : " of `" + command.get_name() + "`";
    errors.push_back(error_at(
        value.span, "PW1502",
        (table ? "there is no command or option `" : "there is no option `") + value.key + "`" + of,
        near.empty() ? "keys are the long names of options: see --help"
                     : "did you mean `" + near + "`?"));
  }

  void set(const OptionRow& row, const ConfigValue& value, bool selected) {
    if (!may_set(row)) return refuse(row, value);
    Setting setting{row, {}, value.span};
    if (!convert(row, value, setting.values)) return;
    if (!selected || !valid(setting)) return;
    add_arguments(setting, value);
    std::erase_if(settings, [&](const Setting& s) { return s.row.option == row.option; });
    settings.push_back(std::move(setting));
  }
  /// Omits a flag that is off.
  static void add_arguments(Setting& setting, const ConfigValue& value) {
    const std::string name = "--" + setting.row.long_name;
    if (setting.row.kind != ValueKind::none)
      for (const std::string& text : setting.values) setting.arguments.push_back(name + "=" + text);
    else if (value.flag)
      setting.arguments.push_back(name);
  }

  static bool of_command_line(const OptionRow& row) {
    return std::ranges::find(kOfCommandLine, row.long_name) != kOfCommandLine.end();
  }
  [[nodiscard]] bool may_set(const OptionRow& row) const {
    return !of_command_line(row) && (access_.all || row.option->get_configurable());
  }
  void refuse(const OptionRow& row, const ConfigValue& value) {
    if (of_command_line(row)) {
      errors.push_back(error_at(value.span, "PW1503",
                                "`" + row.long_name + "` can be set only on the command line"));
      return;
    }
    errors.push_back(
        error_at(value.span, "PW1503",
                 "`" + row.long_name +
                     "` is refused: a discovered (not explicitly named) piecewise.toml must not "
                     "load code, start programs or write files",
                 "pass --" + row.long_name + " on the command line; " + access_.help));
    untrusted.push_back(row.long_name);
  }

  bool wrong(const ConfigValue& value, const std::string& wanted, const std::string& help = "") {
    errors.push_back(error_at(value.span, "PW1504", "`" + value.key + "` takes " + wanted, help));
    return false;
  }

  /// Returns the values as on the command line.
  bool convert(const OptionRow& row, const ConfigValue& value, std::vector<std::string>& out) {
    using Kind = ConfigValue::Kind;
    if (row.kind == ValueKind::none) {
      if (value.kind != Kind::flag) return wrong(value, "true or false");
      out = {row.option->get_flag_value(row.long_name, value.flag ? "true" : "false")};
      return true;
    }
    if (value.kind == Kind::scalar) {
      out = {place(row, value.scalar)};
    } else if (value.kind == Kind::list && row.value.starts_with("LIST")) {
      out = {fmt::format("{}", fmt::join(value.list, ","))};
    } else if (value.kind == Kind::list && row.repeatable) {
      for (const std::string& text : value.list) out.push_back(place(row, text));
    } else if (value.kind == Kind::table && row.value.starts_with("NAME=")) {
      return pairs(value, out);
    } else {
      const bool named = row.value.starts_with("NAME=");
      return wrong(value, named            ? "\"NAME=VALUE\", a list of them, or { NAME = VALUE }"
                          : row.repeatable ? "a string or number, or a list of them"
                                           : "one string or number");
    }
    if (std::ranges::find(out, "") != out.end())
      return wrong(value, "a non-empty string", "remove the line to use the default");
    return true;
  }
  /// Converts `define = { tp = 2 }` to `define = ["tp=2"]`.
  bool pairs(const ConfigValue& value, std::vector<std::string>& out) {
    for (const ConfigValue& pair : value.table) {
      std::string text = pair.scalar;
      if (pair.kind == ConfigValue::Kind::flag) text = pair.flag ? "true" : "false";
      if (pair.kind == ConfigValue::Kind::list) text = fmt::format("{}", fmt::join(pair.list, ","));
      if (text.empty()) return wrong(pair, "a string or number");
      out.push_back(pair.key + "=" + text);
    }
    return true;
  }
  /// Paths are relative to the file; names such as llm are not paths.
  [[nodiscard]] std::string place(const OptionRow& row, const std::string& value) const {
    const bool path = row.kind == ValueKind::file && value.find_first_of("/.") != std::string::npos;
    if (!path || folder_.empty() || value.starts_with('/')) return value;
    return folder_ + value;
  }

  /// Runs the option's checks here, because CLI11 reports no location.
  bool valid(const Setting& setting) {
    for (std::string text : setting.values) {
      for (int i = 0;; ++i) {
        const CLI::Validator* check = nullptr;
        try {
          check = const_cast<CLI::Option*>(setting.row.option)->get_validator(i);
        } catch (const CLI::OptionNotFound&) {
          break;
        }
        const std::string problem = (*check)(text);
        if (problem.empty()) continue;
        errors.push_back(
            error_at(setting.span, "PW1504", "`" + setting.row.long_name + "`: " + problem));
        return false;
      }
    }
    return true;
  }

  const CLI::App& program_;
  std::string folder_;  ///< of the file, ending in a slash; empty: the current folder
  Access access_;
  std::vector<const CLI::App*> selected_;
};

/// Returns the options on the command line.
std::vector<const CLI::Option*> given_options(const CLI::App& program) {
  std::vector<const CLI::Option*> out;
  for (const CommandRow& command : command_rows(program))
    for (const CLI::Option* option : command.command->get_options())
      if (option->count() > 0) out.push_back(option);
  return out;
}

bool holds(const std::vector<const CLI::Option*>& options, const CLI::Option* option) {
  return std::ranges::find(options, option) != options.end();
}

/// Returns true if the command line overrides a setting: it has the option, or one that excludes
/// it. Also true if the setting needs an option that is absent.
bool gives_way(const Setting& setting, const std::vector<Setting>& settings,
               const std::vector<const CLI::Option*>& given) {
  const auto is_set = [&](const CLI::Option* option) {
    return std::ranges::any_of(settings, [&](const Setting& s) { return s.row.option == option; });
  };
  if (holds(given, setting.row.option)) return true;
  for (const CLI::Option* other : setting.row.option->get_excludes())
    if (holds(given, other)) return true;
  for (const CLI::Option* other : setting.row.option->get_needs())
    if (!holds(given, other) && !is_set(other)) return true;
  return false;
}

/// Applies a setting like an option of the command line. Errors of CLI11 become diagnostics.
void apply(const Setting& setting, Options& options, Diagnostics& errors) {
  auto* option = const_cast<CLI::Option*>(setting.row.option);
  try {
    for (const std::string& value : setting.values) option->add_result(value);
    option->run_callback();
  } catch (const CLI::ParseError& problem) {
    errors.push_back(
        error_at(setting.span, "PW1504", "`" + setting.row.long_name + "`: " + problem.what()));
  }
  const auto end = std::ranges::find(options.arguments, "--");
  options.arguments.insert(end, setting.arguments.begin(), setting.arguments.end());
}

void StrictConfig::take(const Session& session, const std::string& path, const std::string& text,
                        Access access) const {
  const auto values = session.need(parse_config(session.context->sources, text, path), kUsage);
  Taking taking(program_, folder_of(path), std::move(access));
  if (has_commands_) {
    taking.top_level(values);
  } else {
    for (const ConfigValue& value : values)
      if (value.key == program_.get_name()) taking.table(program_, value.table);
  }
  if (!taking.errors.empty()) session.die(taking.errors, kUsage);
  const std::vector<const CLI::Option*> given = given_options(program_);
  for (const Setting& setting : taking.settings)
    if (!gives_way(setting, taking.settings, given)) apply(setting, options_, taking.errors);
  if (!taking.errors.empty()) session.die(taking.errors, kUsage);
  options_.config = path;
}

}  // namespace

void refuse_found_values(CLI::App& program) { program.option_defaults()->configurable(false); }

Result<std::vector<std::string>> values_that_need_trust(const CLI::App& program, SourceMap& sources,
                                                        std::string text, const std::string& path) {
  auto values = PW_TRY(parse_config(sources, std::move(text), path));
  Taking all(program, folder_of(path), {});
  all.top_level(values);
  if (!all.errors.empty()) return tl::unexpected(std::move(all.errors));
  Taking found(program, folder_of(path), {.all = false});
  found.top_level(values);
  return std::move(found.untrusted);
}

void add_config_options(CLI::App& program, Options& options, bool has_commands) {
  program
      .set_config("--config", found_file(),
                  std::string("file with default values of options; default: ") + kConfigName +
                      " in this folder or the nearest parent")
      ->type_name("FILE");
  program.add_flag_function("--no-config", [](std::int64_t) {}, "do not read a piecewise.toml");
  program.config_formatter(std::make_shared<StrictConfig>(program, options, has_commands));
}

}  // namespace pw::cli
