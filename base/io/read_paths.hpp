// Records the files that were read by path, for a program that watches them.
#pragma once

#include <string>
#include <vector>

namespace pw {

struct ReadPath {
  std::string path;
  std::string stamp;  ///< file_stamp() before it was read
};

/// Records a path before it is read, whether or not the read succeeds. Thread-safe.
void note_read_path(const std::string& path);
/// Returns the paths in the order in which they were first read.
[[nodiscard]] std::vector<ReadPath> read_paths();
/// Stops recording reads below a folder. It holds the program's own data, which other processes
/// write and no user edits.
void ignore_reads_below(const std::string& folder);

}  // namespace pw
