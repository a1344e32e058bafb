// Standard output of a program. It keeps the first error: a full disk must not look like a short
// answer.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/diagnostic.hpp"

namespace pw {

/// Appends to standard output, in order with what stdio wrote. Errors are kept for the flush.
void write_standard_output(std::string_view bytes);
/// Writes out everything so far, so that later messages elsewhere follow it. Errors are kept for
/// the flush.
void push_standard_output();
/// Flushes everything written so far. Fails once with the first error (PW0001); later losses are
/// not reported again.
Status flush_standard_output();

/// Returns true if a path names standard output, a device or a FIFO. Such a path has no extension
/// to infer a format from, and takes one file only.
[[nodiscard]] bool names_stream(const std::string& path);
/// Returns true for "-", /dev/stdout and the other names of standard output.
[[nodiscard]] bool names_standard_output(std::string_view path);

}  // namespace pw
