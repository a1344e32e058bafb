// piecewise.toml: default values of options, found in the current folder or above it, or named by
// --config. A folder may be a stranger's, so it holds values only, and none that says where to
// write.
#pragma once

#include <string>

#include "cli/session.hpp"

namespace pw::cli {

/// Adds --config and --no-config. Values are taken after the command line is read, which wins, and
/// before anything is checked; they are added to options.arguments, which a report repeats.
/// `has_commands`: top-level keys are for every command that has the option, `[run]` is for one;
/// without, only the table of the program's name is read.
void add_config_options(CLI::App& program, Options& options, bool has_commands);

}  // namespace pw::cli
