// Writing to an open file, pipe or terminal.
#pragma once

#include <string>
#include <string_view>

namespace pw {

/// Writes all bytes, whatever interrupts it. Returns the reason of a failure; empty on success.
std::string write_all(int fd, std::string_view bytes);

}  // namespace pw
