#include "cli/parts/libraries.hpp"

#include "cli/commands.hpp"

namespace pw::cli {

void add_library_commands(CLI::App& app, const Options& options) {
  add_serve_command(app, options);
  add_lsp_command(app, options);
}

}  // namespace pw::cli
