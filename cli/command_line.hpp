// The command line of a program: parsed, run, and its messages printed.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace pw::cli {

/// Parses, which runs the subcommand that was named, then runs `body`; the exit code. Every option
/// takes one value each time it is given, so that a positional argument may follow it.
int run_command_line(
    CLI::App& app, int argc, char** argv, const std::function<void()>& body = [] {});

}  // namespace pw::cli
