#include "cli/help/help_format.hpp"

#include <algorithm>
#include <charconv>
#include <memory>

#include <CLI/CLI.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/environment.hpp"
#include "base/utf8.hpp"

namespace pw::cli {
namespace {

constexpr std::size_t kLeast = 40, kUsual = 80, kMost = 120;  // columns
constexpr std::size_t kNames = 26;                            // of the left column

/// Returns the width of the terminal, otherwise that of COLUMNS.
std::size_t terminal_width() {
  winsize size{};
  std::size_t width = kUsual;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    width = size.ws_col;
  } else {
    const std::string columns = environment("COLUMNS");
    std::from_chars(columns.data(), columns.data() + columns.size(), width);
  }
  return std::clamp(width, kLeast, kMost);
}

std::string wrapped_lines(const std::string& text, std::size_t width) {
  std::string out;
  for (const std::string& line : CLI::detail::split(text, '\n'))
    out += (line.starts_with(' ') ? line : wrapped(line, width, 0)) + "\n";
  return out;
}

/// Prints a name to the left of its description, or above it if the name is long.
std::string help_row(const std::string& name, const std::string& meaning, std::size_t width) {
  const std::size_t names = std::min(kNames, width / 3);
  std::string out = "  " + wrapped(name, width - 6, 6);
  if (meaning.empty()) return out + "\n";
  const std::size_t last = out.rfind('\n') + 1;
  const std::size_t used = count_characters(std::string_view(out).substr(last));
  const bool same_line = used + 2 <= names;
  out += same_line ? std::string(names - used, ' ') : "\n" + std::string(names, ' ');
  return out + wrapped(meaning, width - names, names) + "\n";
}

class HelpFormatter final : public CLI::Formatter {
 public:
  /// Separates groups by one empty line.
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name,
                                      CLI::AppFormatMode mode) const override {
    return CLI::detail::find_and_replace(CLI::Formatter::make_help(app, std::move(name), mode),
                                         "\n\n\n", "\n\n");
  }
  [[nodiscard]] std::string make_option(const CLI::Option* option,
                                        bool is_positional) const override {
    return help_row(make_option_name(option, is_positional) + make_option_opts(option),
                    make_option_desc(option), terminal_width());
  }
  [[nodiscard]] std::string make_option_name(const CLI::Option* option,
                                             bool is_positional) const override {
    return CLI::detail::find_and_replace(CLI::Formatter::make_option_name(option, is_positional),
                                         "{false}", "");
  }
  [[nodiscard]] std::string make_subcommand(const CLI::App* command) const override {
    return help_row(command->get_name(), command->get_description(), terminal_width());
  }
  [[nodiscard]] std::string make_description(const CLI::App* app) const override {
    return wrapped_lines(CLI::Formatter::make_description(app), terminal_width());
  }
  [[nodiscard]] std::string make_footer(const CLI::App* app) const override {
    std::string out = wrapped_lines(app->get_footer(), terminal_width());
    if (app->get_parent() != nullptr)
      out += wrapped_lines("\nOptions of every command, such as --format and --quiet: pwr --help",
                           terminal_width());
    return out;
  }
};

void set_formatter(CLI::App& command, const std::shared_ptr<CLI::FormatterBase>& formatter) {
  command.formatter(formatter);
  for (CLI::App* below : command.get_subcommands([](CLI::App*) { return true; }))
    set_formatter(*below, formatter);
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t used = 0;
  for (const std::string& word : CLI::detail::split(text, ' ')) {
    const std::size_t length = count_characters(word);
    if (used > 0 && used + 1 + length > width) {
      out += "\n" + std::string(indent, ' ');
      used = 0;
    } else if (used > 0) {
      out += ' ';
      ++used;
    }
    out += word;
    used += length;
  }
  return out;
}

void lay_out_help(CLI::App& program) { set_formatter(program, std::make_shared<HelpFormatter>()); }

OptionsOf::OptionsOf(CLI::App& command, std::string group)
    : command_(command), group_(std::move(group)), before_(command.get_options().size()) {}

OptionsOf::~OptionsOf() {
  const std::vector<CLI::Option*> all = command_.get_options();
  for (std::size_t i = before_; i < all.size(); ++i)
    if (!all[i]->get_positional()) all[i]->group(group_);
}

}  // namespace pw::cli
