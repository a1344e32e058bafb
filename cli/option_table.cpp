#include "cli/option_table.hpp"

#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "dsl/embedded_rules.hpp"

namespace pw::cli {
namespace {

/// CLI11 prints a set as "{a,b}" in the type's name.
std::vector<std::string> choices_in(const std::string& type) {
  const std::size_t begin = type.find('{'), end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

/// Returns the names that -r accepts besides files: library files with pipelines.
std::vector<std::string> library_names() {
  std::vector<std::string> out;
  for (const EmbeddedFile& file : embedded_rules())
    if (file.path.find('/') == std::string_view::npos)
      out.emplace_back(file.path.substr(0, file.path.rfind('.')));
  return out;
}

ValueKind kind_of(const OptionRow& row) {
  if (row.value.starts_with("FILE") || row.long_name == "output") return ValueKind::file;
  if (row.value.starts_with("DIR")) return ValueKind::folder;
  return row.choices.empty() ? ValueKind::text : ValueKind::choice;
}

OptionRow row_of(const CLI::Option& option) {
  OptionRow row;
  row.option = &option;
  row.description = option.get_description();
  row.initial = option.get_default_str();
  if (!option.get_lnames().empty()) row.long_name = option.get_lnames().front();
  if (!option.get_snames().empty()) row.short_name = option.get_snames().front();
  if (option.get_items_expected_max() == 0) return row;
  const std::string type = option.get_type_name();
  row.value = type.substr(0, type.find(':'));
  row.choices = row.long_name == "rules" ? library_names() : choices_in(type);
  row.repeatable = option.get_items_expected_max() > 1;
  row.kind = kind_of(row);
  return row;
}

void add_below(const CLI::App& command, const std::vector<std::string>& path,
               std::vector<CommandRow>& out) {
  out.push_back({path, &command});
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
    std::vector<std::string> longer = path;
    longer.push_back(below->get_name());
    add_below(*below, longer, out);
  }
}

}  // namespace

std::vector<OptionRow> option_rows(const CLI::App& command) {
  std::vector<OptionRow> out;
  for (const CLI::Option* option : command.get_options())
    if (option->nonpositional() && !option->get_group().empty()) out.push_back(row_of(*option));
  return out;
}

std::vector<OptionRow> positional_rows(const CLI::App& command) {
  std::vector<OptionRow> out;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional() || option->get_group().empty()) continue;
    out.push_back(row_of(*option));
    out.back().long_name = option->get_name(true);
    if (out.back().kind == ValueKind::text) out.back().kind = ValueKind::file;
  }
  return out;
}

std::vector<CommandRow> command_rows(const CLI::App& program) {
  std::vector<CommandRow> out;
  add_below(program, {}, out);
  return out;
}

std::vector<std::string> names_below(const CLI::App& command) {
  std::vector<std::string> out;
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; }))
    out.push_back(below->get_name());
  return out;
}

std::string joined(const std::vector<std::string>& path, const std::string& separator) {
  return fmt::format("{}", fmt::join(path, separator));
}

CLI::Validator offered(const std::vector<std::string>& choices) {
  return {[](std::string&) { return std::string(); },
          fmt::format("{{{}}}", fmt::join(choices, ","))};
}

}  // namespace pw::cli
