// Completion scripts for shells, made from a program's option tables. They hold all they offer, so
// that completing starts no program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace pw::cli {

inline const std::vector<std::string> kShells{"bash", "zsh", "fish"};

/// A script for one of kShells: commands, options, and the values of options that take one of a
/// set; elsewhere names of files.
std::string completion_script(const CLI::App& program, std::string_view shell);

}  // namespace pw::cli
