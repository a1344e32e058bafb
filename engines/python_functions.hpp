// Host functions of a Python file, which a process of `python3` runs: the file states
// `functions = {"mine.f": f}`. It runs with all rights of the program: only its user names one.
#pragma once

#include <string>

#include "backends/host_functions.hpp"

namespace pw {

/// Starts the process, and gives its functions to the context, which keeps it alive. PW1229 where
/// there is no `python3` or numpy, or where the file does not load.
Status give_python_functions(Context& context, const std::string& path);

}  // namespace pw
