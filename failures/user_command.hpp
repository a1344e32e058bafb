// A command of the user's that looks at files: run without a shell, in a process group of its own,
// with nothing to read, under a limit of time, its files in a folder that is removed afterwards.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw {

/// What a command said of a file, as `git bisect run` reads exit codes: 0 is good, 125 and what
/// took too long cannot be told, all else is bad, an end by a signal too.
enum class Saying : std::uint8_t { good, bad, unclear };

struct UserCommand {
  std::vector<std::string> words;  ///< the program and its arguments
  double seconds = 60;             ///< at most, a run
};

/// Words as a shell splits them: by blanks, with '…', "…" and \ to keep what is between together.
/// Nothing else is special. PW1416 for a quote that is not closed, or no words.
Result<std::vector<std::string>> split_words(const std::string& text);

/// A file for the command: `{name}` in its words stands for its path.
struct CommandFile {
  std::string name, text;
};
/// Writes the files and runs the command. Where no word names one, the path of the last file is
/// its last argument. PW1416 where the program is not found, or ends with 126 or 127.
Result<Saying> run_command(const UserCommand& command, const std::vector<CommandFile>& files);

}  // namespace pw
