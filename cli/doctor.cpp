// Exports the command doctor: what is here, and what it would be used for.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.hpp"

namespace pw::cli {

void add_doctor_command(CLI::App& app, const Options& options) {
  auto* sub = app.add_subcommand("doctor", "Say what this machine has: compilers, CUDA, backends");
  sub->callback([&options] {
    Table table({"what", "state"});
    for (const auto& [what, state] : capabilities()) table.add({what, state});
    std::fputs(table.print(options.format).c_str(), stdout);
  });
}

}  // namespace pw::cli
