#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "pipeline/run/capabilities.hpp"

namespace pw::cli {

void add_doctor_command(CLI::App& app, const Options& options) {
  auto* sub = app.add_subcommand(
      "doctor", "Show what this machine provides: backends, CUDA compiler, C++ compiler");
  sub->callback([&options] {
    Table table = capability_table(list_capabilities());
    if (!options.config.empty())
      table.add({"piecewise.toml", options.config, "defaults of options"});
    print_out(table.print(options.format));
  });
}

}  // namespace pw::cli
