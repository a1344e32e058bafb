// A lock between processes and threads, on a file; released when its holder ends.
#pragma once

#include <string>

namespace pw {

class FileLock {
 public:
  /// Waits for the lock. It is not held if the file cannot be created.
  explicit FileLock(const std::string& path);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();
  [[nodiscard]] bool held() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Writes a temporary file, flushes it to disk, and renames it to its final path. Removes
/// `temporary` on failure. Returns the error, or an empty text.
[[nodiscard]] std::string write_durably(const std::string& temporary, const std::string& path,
                                        const std::string& bytes);

}  // namespace pw
