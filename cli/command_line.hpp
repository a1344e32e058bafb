// The command line of a program: parsed, run, and its messages printed.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace pw::cli {

struct Options;

/// What pwr and pwviz share: colour, quiet, progress, the form of diagnostics, --watch.
void add_common_options(CLI::App& app, Options& options);

/// Parses, which runs the subcommand that was named, then runs `body`; the exit code. Every option
/// takes one value each time it is given, so that a positional argument may follow it.
int run_command_line(
    CLI::App& app, const Options& options, int argc, char** argv,
    const std::function<void()>& body = [] {});

}  // namespace pw::cli
