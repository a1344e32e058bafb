// The layout of --help: within the terminal's width, with commands and options in groups.
#pragma once

#include <cstddef>
#include <string>

namespace CLI {
class App;
}

namespace pw::cli {

/// Applies the layout to the program and its present commands.
void lay_out_help(CLI::App& program);

/// Assigns options added during its lifetime to a group of --help.
class OptionsOf {
 public:
  OptionsOf(CLI::App& command, std::string group);
  OptionsOf(const OptionsOf&) = delete;
  OptionsOf& operator=(const OptionsOf&) = delete;
  ~OptionsOf();

 private:
  CLI::App& command_;
  std::string group_;
  std::size_t before_;
};

/// Wraps a text at spaces to `width` characters with a hanging indent. Words that are too long, and
/// lines that begin with a space, remain whole.
[[nodiscard]] std::string wrapped(const std::string& text, std::size_t width, std::size_t indent);

}  // namespace pw::cli
