#include "codegen/cache/lock.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/io/write_all.hpp"

namespace pw {

namespace {

/// The open files of locks. A lock belongs to its open file, which a forked process shares, so that
/// process closes them: otherwise it would hold the locks of its parent, and wait for itself.
struct LockFiles {
  std::mutex changing;
  std::set<int> open;
};

LockFiles& lock_files() {
  static LockFiles& files = []() -> LockFiles& {
    auto* const all = new LockFiles;  // threads may hold locks until the process ends
    ::pthread_atfork([] { lock_files().changing.lock(); }, [] { lock_files().changing.unlock(); },
                     [] {
                       for (const int file : lock_files().open) ::close(file);
                       lock_files().open.clear();
                       lock_files().changing.unlock();
                     });
    return *all;
  }();
  return files;
}

int open_lock(const std::string& path) {
  const std::lock_guard<std::mutex> here(lock_files().changing);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file >= 0) lock_files().open.insert(file);
  return file;
}

/// Does nothing in a process that was forked since the file was opened.
void close_lock(int file) {
  const std::lock_guard<std::mutex> here(lock_files().changing);
  if (lock_files().open.erase(file) > 0) ::close(file);
}

}  // namespace

FileLock::FileLock(const std::string& path) : fd_(open_lock(path)) {
  while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    close_lock(fd_);
    fd_ = -1;
  }
}

FileLock::~FileLock() {
  if (fd_ >= 0) close_lock(fd_);
}

std::string write_durably(const std::string& temporary, const std::string& path,
                          const std::string& bytes) {
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return std::strerror(errno);
  std::string why = write_all(fd, bytes);
  if (why.empty() && ::fsync(fd) != 0) why = std::strerror(errno);
  if (::close(fd) != 0 && why.empty()) why = std::strerror(errno);
  if (why.empty() && std::rename(temporary.c_str(), path.c_str()) != 0) why = std::strerror(errno);
  if (!why.empty()) {
    ::unlink(temporary.c_str());
    return why;
  }
  const std::string folder = std::filesystem::path(path).parent_path();
  if (const int at = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); at >= 0) {
    ::fsync(at);  // the name, too
    ::close(at);
  }
  return "";
}

}  // namespace pw
