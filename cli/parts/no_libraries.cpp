#include "cli/parts/libraries.hpp"

namespace pw::cli {

void add_library_commands(CLI::App&, const Options&) {}

}  // namespace pw::cli
