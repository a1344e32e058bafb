// piecewise.toml: default values of options, found in the current folder or above it, or named by
// --config. A folder may be a stranger's, so a file that was found sets only the options whose
// declaration ends with `->configurable()`: none that loads code, starts a program or writes. A
// file that the command line names, or that the user trusts (pipeline/trust.hpp), sets all.
#pragma once

#include <string>

#include "cli/session.hpp"

namespace pw::cli {

/// Makes options that are declared from here on refuse a value of a found file, but for those
/// whose declaration ends with `->configurable()`. Called before the first option is added.
void refuse_found_values(CLI::App& program);

/// Adds --config and --no-config. Values are taken after the command line is read, which wins, and
/// before anything is checked; they are added to options.arguments, which a report repeats.
/// `has_commands`: top-level keys are for every command that has the option, `[run]` is for one;
/// without, only the table of the program's name is read.
void add_config_options(CLI::App& program, Options& options, bool has_commands);

/// Returns the options that a file sets and a found file may not, in the order of the file. PW1501
/// to PW1504 where the file has mistakes besides.
Result<std::vector<std::string>> values_that_need_trust(const CLI::App& program, SourceMap& sources,
                                                        std::string text, const std::string& path);

}  // namespace pw::cli
