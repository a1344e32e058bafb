// The commands of libraries that a build may omit (PW_LIBRARIES).
#pragma once

#include "cli/session.hpp"

namespace pw::cli {

/// Adds serve and lsp; nothing in a build without them.
void add_library_commands(CLI::App& app, const Options& options);

}  // namespace pw::cli
