// Variables of the process's environment.
#pragma once

#include <string>

namespace pw {

/// Returns the value of a variable; empty if it is not set.
[[nodiscard]] std::string environment(const char* name);

}  // namespace pw
