#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "lsp/server.hpp"

namespace pw::cli {

void add_lsp_command(CLI::App& app, const Options&) {
  auto* sub = app.add_subcommand(
      "lsp", "Run a language server (LSP) for editors on standard input and output");
  sub->add_flag("--stdio")
      ->description("accepted for editors that pass it; standard input and output are always used")
      ->configurable();
  sub->footer(
      "Settings, as initializationOptions or under `piecewise`: graph (a file in which matches of "
      "each\n"
      "rule are counted), debounce (milliseconds from the last keystroke to a check).\n"
      "Example:\n"
      "  pwr lsp        started by an editor: docs/editors.md");
  sub->callback([] { throw Exit{serve()}; });
}

}  // namespace pw::cli
