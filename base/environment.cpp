#include "base/environment.hpp"

#include <cstdlib>

namespace pw {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace pw
