// Parses and runs a command line, and prints its messages.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace pw::cli {

struct Options;

/// Adds the options common to pwr and pwviz: color, quiet, progress, format of diagnostics,
/// --watch.
void add_common_options(CLI::App& app, Options& options);

/// Parses the arguments, which runs the named subcommand, then runs `body`; returns the exit code.
/// Every option takes one value at a time, so that a positional argument may follow it.
int run_command_line(
    CLI::App& app, const Options& options, int argc, char** argv,
    const std::function<void()>& body = [] {});

}  // namespace pw::cli
