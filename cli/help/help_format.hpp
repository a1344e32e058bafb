// How --help is laid out: within the terminal's width, commands and options in groups.
#pragma once

#include <cstddef>
#include <string>

namespace CLI {
class App;
}

namespace pw::cli {

/// For the program and all commands that it has by now.
void lay_out_help(CLI::App& program);

/// While it lives, the options that a command gets are of a group of its --help.
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

/// Breaks a text at spaces so that no line is longer than `width` characters, each after the first
/// set in by `indent`. Words that are longer stay whole; so do lines that begin with a space.
[[nodiscard]] std::string wrapped(const std::string& text, std::size_t width, std::size_t indent);

}  // namespace pw::cli
