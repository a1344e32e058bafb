// Variables of the process's environment.
#pragma once

#include <string>

namespace pw {

/// The value of a variable; empty where it is not set.
[[nodiscard]] std::string environment(const char* name);

}  // namespace pw
