// Host functions from a Python file that states `functions = {"mine.f": f}`; a `python3` process
// runs them. It runs with all rights of the program, so only the program's user can name the file.
#pragma once

#include <string>

#include "backends/host_functions.hpp"

namespace pw {

/// Starts the process and registers its functions with the context, which keeps it alive. Fails
/// with PW1229 if `python3` or numpy is missing, or if loading the file fails.
Status give_python_functions(Context& context, const std::string& path);

}  // namespace pw
