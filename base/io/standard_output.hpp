// Standard output of a program, with the first error remembered: a full disk must not look like a
// short answer.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/diagnostic.hpp"

namespace pw {

/// Appends to standard output, in order with what stdio wrote; errors wait for the flush.
void write_standard_output(std::string_view bytes);
/// Brings what was written so far out, for messages elsewhere to come after it; errors wait too.
void push_standard_output();
/// Brings everything written so far to its end. Fails once with the first error (PW0001); what is
/// lost after that is not told again.
Status flush_standard_output();

/// Whether a path names standard output, or a device or FIFO: what has no extension to go by, and
/// takes one file only.
[[nodiscard]] bool names_stream(const std::string& path);
/// "-", /dev/stdout and the other names of it.
[[nodiscard]] bool names_standard_output(std::string_view path);

}  // namespace pw
