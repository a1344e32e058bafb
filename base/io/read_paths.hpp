// The files that were read by their path: what a program that watches them asks for.
#pragma once

#include <string>
#include <vector>

namespace pw {

struct ReadPath {
  std::string path;
  std::string stamp;  ///< file_stamp() before it was read
};

/// Remembers a path before it is read, whether or not that succeeds. Safe from threads.
void note_read_path(const std::string& path);
/// In the order in which they were first read.
[[nodiscard]] std::vector<ReadPath> read_paths();
/// Leaves out what is read below a folder from now on: what the program keeps for itself, and other
/// processes write meanwhile, is nothing that a user edits.
void ignore_reads_below(const std::string& folder);

}  // namespace pw
