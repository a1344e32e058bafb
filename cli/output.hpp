// The two output streams of the programs. Control characters in untrusted names and texts are
// escaped here for all commands.
#pragma once

#include <string_view>

namespace pw::cli {

/// Prints text to standard output with control characters escaped, except line feeds and tabs.
/// `finish_output` reports errors.
void print_out(std::string_view text);
/// Prints text with its own colors, whose quotations are already escaped.
void print_rendered(std::string_view text);
/// Prints escaped text to standard error. Ignores errors and closed readers.
void print_error(std::string_view text);

/// Declares that a file's bytes go to standard output if its path is "-" or /dev/stdout. print_out
/// and print_rendered then write to standard error.
void take_standard_output_for(std::string_view path);

/// Opens closed standard streams on a descriptor that fails; otherwise the next opened file would
/// take their place.
void open_standard_streams();
/// Flushes standard output. Returns the command's exit code, or kInvalidInput with a message if the
/// command succeeded but its output was lost.
int finish_output(int code);

}  // namespace pw::cli
