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

}  // namespace pw
