// The two streams of the programs. What strangers' names and texts do to a terminal is escaped
// here, whatever command prints them.
#pragma once

#include <string_view>

namespace pw::cli {

/// Text on standard output; control characters are escaped, but for line ends and tabs. An error
/// is told by `finish_output`.
void print_out(std::string_view text);
/// The same for text that colours itself, and has escaped what it quotes.
void print_rendered(std::string_view text);
/// Text on standard error that has escaped what it quotes. An error, or a reader that has gone
/// away, changes nothing for the command.
void print_error(std::string_view text);

/// Says that the bytes of a file go to standard output if its path is "-" or /dev/stdout: then what
/// print_out and print_rendered get goes to standard error, so that the file's bytes stand alone.
void take_standard_output_for(std::string_view path);

/// Gives standard streams that the caller closed a descriptor, on which what they are for fails:
/// else the next file that is opened would take their place.
void open_standard_streams();
/// Brings standard output to its end. The exit code: the command's, or kInvalidInput with a message
/// where the command succeeded and its output was lost.
int finish_output(int code);

}  // namespace pw::cli
