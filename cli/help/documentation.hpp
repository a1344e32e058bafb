// Manual pages and completions, from the option tables of the program that writes them.
#pragma once

#include "cli/session.hpp"

namespace pw::cli {

/// Adds the commands `completion` and `man`. The program must outlive the parse.
void add_documentation_commands(CLI::App& program, const Options& options);
/// Adds --completion and --man, for a program without commands.
void add_documentation_options(CLI::App& program);

}  // namespace pw::cli
