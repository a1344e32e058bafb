// Files that are being written under a temporary name. If a signal ends the program, its handler
// removes them.
#pragma once

#include <cstddef>
#include <string>

namespace pw {

/// Name that must not outlive the program. A name that exceeds the slot's length or the number of
/// slots is not recorded.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(const std::string& path);
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;
  ~UnfinishedFile();

 private:
  std::size_t place_;
};

/// Unlinks all of them. A signal handler may call it.
void remove_unfinished_files() noexcept;

}  // namespace pw
