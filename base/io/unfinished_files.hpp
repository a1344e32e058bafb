// Files that are being written under a name of their own: where a signal ends the program, its
// handler takes them away.
#pragma once

#include <cstddef>
#include <string>

namespace pw {

/// A name that must not outlive the program. A name too long for its place, or one too many, is not
/// kept.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(const std::string& path);
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;
  ~UnfinishedFile();

 private:
  std::size_t place_;
};

/// Unlinks them all. May be called by a signal handler.
void remove_unfinished_files() noexcept;

}  // namespace pw
