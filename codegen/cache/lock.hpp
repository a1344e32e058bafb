// A lock between processes and threads, on a file; released when its holder ends.
#pragma once

#include <string>

namespace pw {

class FileLock {
 public:
  /// Waits. Not held where the file cannot be made.
  explicit FileLock(const std::string& path);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();
  [[nodiscard]] bool held() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Writes a file beside its final place, brings it to disk, and puts it there whole. `temporary` is
/// removed when something fails; the reason, or an empty text.
[[nodiscard]] std::string write_durably(const std::string& temporary, const std::string& path,
                                        const std::string& bytes);

}  // namespace pw
