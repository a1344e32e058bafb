#include "cli/help/manual.hpp"

#include <cctype>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/version.hpp"
#include "cli/option_table.hpp"

namespace pw::cli {
namespace {

/// Returns the code point at `at` and advances past it; the byte itself if it is not UTF-8.
std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto first = static_cast<unsigned char>(text[at++]);
  const int more = first < 0xc0 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  if (more == 0) return first;
  std::uint32_t out = first & (0x3fU >> more);
  for (int i = 0; i < more && at < text.size(); ++i)
    out = out << 6 | (static_cast<unsigned char>(text[at++]) & 0x3fU);
  return out;
}

/// Returns text that roff prints literally: no escapes, no requests, ASCII only.
std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if ((out.empty() || out.back() == '\n') && (text[at] == '.' || text[at] == '\'')) out += "\\&";
    const std::uint32_t c = next_code_point(text, at);
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '^')
      out += "\\(ha";
    else if (c == '~')
      out += "\\(ti";
    else if (c == '`')
      out += "\\(ga";
    else if (c == '\'')
      out += "\\(aq";
    else if (c == '"')
      out += "\\(dq";
    else if (c < 0x80)
      out += static_cast<char>(c);
    else
      out += fmt::format("\\[u{:04X}]", c);
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + escaped(text) + "\\fR"; }

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

/// Returns the alternatives of a choice, with line break opportunities; otherwise the placeholder
/// of CLI11 or the command.
std::string value_of(const OptionRow& row) {
  if (row.kind != ValueKind::choice) return italic(row.value);
  std::string out;
  for (const std::string& choice : row.choices) out += (out.empty() ? "" : "|\\:") + bold(choice);
  return out;
}

std::string option_head(const OptionRow& row) {
  std::string out;
  if (!row.short_name.empty()) out += bold("-" + row.short_name);
  if (!row.long_name.empty()) out += (out.empty() ? "" : ", ") + bold("--" + row.long_name);
  if (row.kind != ValueKind::none) out += " " + value_of(row);
  return out;
}

std::string option_text(const OptionRow& row) {
  std::string out = ".TP\n" + option_head(row) + "\n" + escaped(row.description) + "\n";
  if (!row.initial.empty()) out += ".br\nIf left out: " + bold(row.initial) + ".\n";
  if (row.repeatable) out += ".br\nMay be given several times.\n";
  return out;
}

std::string arguments_text(const CLI::App& command) {
  std::string out;
  for (const OptionRow& row : positional_rows(command))
    out += ".TP\n" + italic(row.long_name) +
           (row.kind == ValueKind::choice ? " (" + value_of(row) + ")" : "") + "\n" +
           escaped(row.description) + "\n";
  for (const OptionRow& row : option_rows(command)) out += option_text(row);
  return out;
}

std::string synopsis(const std::string& program, const CommandRow& row) {
  std::string out = bold(row.path.empty() ? program : program + " " + joined(row.path));
  out += " [" + italic("OPTIONS") + "]";
  if (!row.command->get_subcommands([](const CLI::App*) { return true; }).empty())
    out += " " + italic("COMMAND") + " ...";
  for (const OptionRow& argument : positional_rows(*row.command)) {
    std::string shown = italic(argument.long_name) + (argument.repeatable ? " ..." : "");
    out += argument.option->get_required() ? " " + shown : " [" + shown + "]";
  }
  return out + "\n";
}

/// Returns a description's first sentence, for the NAME line that whatis(1) shows.
std::string summary(const CLI::App& command) {
  const std::string text = command.get_description();
  return escaped(text.substr(0, text.find_last_not_of('.') + 1));
}

/// Preserves the line breaks of footers: examples and lists of exit codes.
std::string footer_section(const CLI::App& command) {
  const std::string footer = command.get_footer();
  if (footer.empty()) return {};
  return ".SH NOTES\n.nf\n" + escaped(footer) + "\n.fi\n";
}

/// Returns the full name and its summary.
std::string command_list(const std::string& program, const CLI::App& command) {
  std::string out;
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; }))
    out += ".TP\n" + bold(program + " " + below->get_name()) + "\n" +
           escaped(below->get_description()) + "\n";
  return out.empty() ? out : ".SH COMMANDS\n" + out;
}

std::string page_head(const std::string& name, const CLI::App& command) {
  return ".\\\" Made by the program from its option tables.\n" +
         fmt::format(".TH {} 1 {} \"Piecewise {}\" \"User Commands\"\n", upper(escaped(name)),
                     PW_VERSION_DATE, version()) +
         ".SH NAME\n" + escaped(name) + " \\- " + summary(command) + "\n";
}

/// Lists the subcommands, each with its arguments.
std::string sections_below(const std::string& program, const CommandRow& row) {
  std::string out;
  for (const CommandRow& below : command_rows(*row.command)) {
    if (below.path.empty()) continue;
    CommandRow whole{row.path, below.command};
    whole.path.insert(whole.path.end(), below.path.begin(), below.path.end());
    out += ".SH " + upper(escaped(joined(whole.path))) + "\n" + synopsis(program, whole) + ".PP\n" +
           escaped(below.command->get_description()) + "\n" + arguments_text(*below.command);
  }
  return out;
}

/// Options of the program apply to its commands too.
std::string see_also(const std::string& program, const CommandRow& row, const CLI::App& whole) {
  std::string out = ".SH SEE ALSO\n";
  if (!row.path.empty())
    return out + "The options of " + bold(program) + "(1) may be given here too.\n";
  std::string names;  // `\%` keeps each on one line
  for (const CLI::App* command : whole.get_subcommands([](const CLI::App*) { return true; }))
    names += (names.empty() ? "\\%" : ",\n\\%") + bold(program + "-" + command->get_name()) + "(1)";
  return names.empty() ? "" : out + names + "\n";
}

}  // namespace

std::vector<ManualPage> manual_pages(const CLI::App& program) {
  std::vector<ManualPage> out;
  const std::string& name = program.get_name();
  for (const CommandRow& row : command_rows(program)) {
    if (row.path.size() > 1) continue;  // a section of the parent page
    const CLI::App& command = *row.command;
    ManualPage page{row.path.empty() ? name : name + "-" + row.path.front(), {}};
    page.text = page_head(page.name, command) + ".SH SYNOPSIS\n" + synopsis(name, row) +
                ".SH DESCRIPTION\n" + escaped(command.get_description()) + "\n.SH OPTIONS\n" +
                arguments_text(command);
    page.text += row.path.empty() ? command_list(name, command) : sections_below(name, row);
    page.text += footer_section(command) + see_also(name, row, program);
    out.push_back(std::move(page));
  }
  return out;
}

}  // namespace pw::cli
