// Variables of the process's environment.
#pragma once

#include <cstdlib>
#include <string>

namespace pw {

/// Returns the value of a variable; empty if it is not set.
[[nodiscard]] inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace pw
