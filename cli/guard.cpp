// Exports guarded.
#include "cli/guard.hpp"

#include <new>

#include <fmt/format.h>

#include "base/assert.hpp"
#include "cli/session.hpp"

namespace pw::cli {

int guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "error: out of memory\n");
  } catch (const std::exception& e) {
    fmt::print(stderr,
               "internal error: {}\nThis is a bug. Please report it with the command and its input "
               "files.\n",
               e.what());
  }
  return kInternalError;
}

}  // namespace pw::cli
