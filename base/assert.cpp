#include "base/assert.hpp"

namespace pw {

void assertion_failed(const char* condition, const char* file, int line,
                      const std::string& message) {
  throw InternalError(std::string(file) + ":" + std::to_string(line) + ": " + message + " (" +
                      condition + ")");
}

}  // namespace pw
