// piecewise.toml: default values of options, found in the current folder or above it, or named by
// --config. A folder may be untrusted, so a discovered file sets only the options that
// add_setting adds or whose declaration ends with `->configurable()`: none that loads code, starts
// a program or writes. A file that the command line names, or that the user trusts
// (pipeline/trust.hpp), sets all.
#pragma once

#include <string>

#include "cli/session.hpp"

namespace pw::cli {

/// Forbids discovered files to set options declared from here on, except those added by
/// add_setting or declared with `->configurable()`. Call it before adding the first option.
void refuse_found_values(CLI::App& program);

/// Adds --config and --no-config. File values apply after the command line, which takes precedence,
/// and before any check. They are appended to options.arguments, which a report repeats. With
/// `has_commands`, top-level keys apply to every command that has the option and `[run]` to one;
/// otherwise only the table named after the program is read.
void add_config_options(CLI::App& program, Options& options, bool has_commands);

/// Returns the options of a file that a discovered file may not set, in file order. Fails with
/// PW1501 to PW1504 on other mistakes.
Result<std::vector<std::string>> values_that_need_trust(const CLI::App& program, SourceMap& sources,
                                                        std::string text, const std::string& path);

}  // namespace pw::cli
