// Internal invariants. A failed PW_ASSERT is a bug in this program, never a user error: it throws
// InternalError, which the command line turns into exit code 70.
#pragma once

#include <stdexcept>
#include <string>

namespace pw {

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line,
                                   const std::string& message);

}  // namespace pw

#define PW_ASSERT(condition, message)                                                  \
  do {                                                                                 \
    if (!(condition)) ::pw::assertion_failed(#condition, __FILE__, __LINE__, message); \
  } while (false)
