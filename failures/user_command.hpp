// Runs a user's command on files: without a shell, in its own process group, with empty input and a
// time limit. The files are in a folder that is removed afterwards.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw {

/// The verdict of a command, by the exit codes of `git bisect run`: 0 is good; 125 or a timeout is
/// unclear; all else is bad, including death by a signal.
enum class FailureVerdict : std::uint8_t { good, bad, unclear };

struct UserCommand {
  std::vector<std::string> words;  ///< the program and its arguments
  double seconds = 60;             ///< limit of one run
};

/// Splits words like a shell, at blanks, with '…', "…", and \ as quotes; nothing else is special.
/// Fails with PW1416 for an unclosed quote or an empty command.
Result<std::vector<std::string>> split_words(const std::string& text);

/// A file for the command: `{name}` in its words is replaced by the path.
struct CommandFile {
  std::string name, text;
};
/// Writes the files and runs the command. If no word names a file, the last file's path is
/// appended. Fails with PW1416 if the program is not found, or exits with 126 or 127.
Result<FailureVerdict> run_command(const UserCommand& command,
                                   const std::vector<CommandFile>& files);

}  // namespace pw
