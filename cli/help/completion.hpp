// Completion scripts for shells, made from a program's option tables. They contain all offered
// words, so completion starts no program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace pw::cli {

inline const std::vector<std::string> kShells{"bash", "zsh", "fish"};

/// Returns a script for one of kShells. It completes commands, options, and enumerated values;
/// elsewhere file names.
std::string completion_script(const CLI::App& program, std::string_view shell);

}  // namespace pw::cli
