// A regular file is replaced as a whole, by a file without a name or by renaming a temporary file
// of its folder. A device, a FIFO and the file that standard output goes to are written in place.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/io/file.hpp"
#include "base/io/standard_output.hpp"
#include "base/io/unfinished_files.hpp"
#include "base/io/write_all.hpp"
#include "base/printable.hpp"

namespace pw {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // the kernel's limit

/// Empty on success, else the reason of the failure.
using Reason = std::string;

Reason last_error() { return std::strerror(errno); }

/// Closes a file. Closing can be the first call to report a full disk.
Reason close_after(int fd, Reason why) {
  if (::close(fd) != 0 && why.empty()) return last_error();
  return why;
}

/// Returns true for links of procfs, which lead to open files whatever their text is.
bool on_procfs(const fs::path& link) {
  struct statfs info{};
  const fs::path folder = link.has_parent_path() ? link.parent_path() : fs::path(".");
  return ::statfs(folder.c_str(), &info) == 0 && info.f_type == PROC_SUPER_MAGIC;
}

struct Destination {
  fs::path path;       ///< not itself a symbolic link
  struct stat info{};  ///< where `exists`
  bool exists = false;
  bool in_place = false;  ///< an open file, or not a regular one
};

/// Follows symbolic links, also to a file that does not exist yet.
Reason find_destination(const std::string& path, Destination& out) {
  out.path = path;
  struct stat link{};
  for (int links = 0; ::lstat(out.path.c_str(), &link) == 0 && S_ISLNK(link.st_mode); ++links) {
    if (links == kMostLinks) return std::strerror(ELOOP);
    if (on_procfs(out.path)) {
      out.in_place = true;
      break;
    }
    std::error_code error;
    const fs::path target = fs::read_symlink(out.path, error);
    if (error) return error.message();
    out.path = out.path.parent_path() / target;
  }
  out.exists = ::stat(out.path.c_str(), &out.info) == 0;
  if (!out.exists) return errno == ENOENT ? Reason() : last_error();
  if (S_ISDIR(out.info.st_mode)) return "it is a folder";
  out.in_place = out.in_place || !S_ISREG(out.info.st_mode);
  return {};
}

bool is_standard_output(const Destination& to) {
  struct stat out{};
  return to.exists && ::fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == to.info.st_dev &&
         out.st_ino == to.info.st_ino;
}

Reason write_in_place(const fs::path& path, std::string_view content) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return last_error();
  return close_after(fd, write_all(fd, content));
}

/// Returns names in the destination's folder, one after another.
fs::path temporary_name(const fs::path& folder) {
  static std::atomic<unsigned> serial{0};
  return folder / fmt::format(".pwr-{}-{}.tmp", ::getpid(), serial++);
}

constexpr int kMostTries = 1000;  // others may have taken a name

/// Creates a file with a free name; returns -1 with errno on failure.
int open_temporary(const fs::path& folder, mode_t mode, fs::path& name) {
  for (int tries = 0; tries < kMostTries; ++tries) {
    name = temporary_name(folder);
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

/// Copies owner and mode of the replaced file. Only root can change an owner; otherwise the owner
/// stays.
Reason take_over(int fd, const struct stat& replaced) {
  const bool given = ::fchown(fd, replaced.st_uid, replaced.st_gid) == 0;
  const mode_t mode = replaced.st_mode & (given ? 07777U : 0777U);
  return ::fchmod(fd, mode) == 0 ? Reason() : last_error();
}

Reason fill(int fd, const Destination& to, std::string_view content) {
  Reason why = write_all(fd, content);
  return why.empty() && to.exists ? take_over(fd, to.info) : why;
}

Reason rename_over(const fs::path& temporary, const Destination& to) {
  if (std::rename(temporary.c_str(), to.path.c_str()) == 0) return {};
  Reason why = last_error();
  ::unlink(temporary.c_str());
  return why;
}

/// Links a file without a name to the destination's name; returns false if the system does not
/// support it. A link cannot replace an existing name, so the file has a temporary name between two
/// calls.
bool link_as(int fd, const Destination& to, Reason& why) {
  const std::string open_file = fmt::format("/proc/self/fd/{}", fd);
  const auto linked = [&](const fs::path& name) {
    return ::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (!to.exists && linked(to.path)) return true;
  if (!to.exists && errno != EEXIST) return false;
  for (int tries = 0; tries < kMostTries; ++tries) {
    const fs::path name = temporary_name(to.path.parent_path());
    const UnfinishedFile unfinished(name.string());
    if (linked(name)) {
      why = rename_over(name, to);
      return true;
    }
    if (errno != EEXIST) return false;
  }
  return false;
}

/// Replaces the destination by a file without a name, which leaves nothing however the program
/// ends. Returns false if the file system does not support such files.
bool replace_by_nameless(const Destination& to, std::string_view content, mode_t mode,
                         Reason& why) {
  fs::path folder = to.path.parent_path();
  if (folder.empty()) folder = ".";
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  if (fd < 0) return false;
  why = fill(fd, to, content);
  const bool done = !why.empty() || link_as(fd, to, why);
  why = close_after(fd, std::move(why));
  return done;
}

Reason replace_by_named(const Destination& to, std::string_view content, mode_t mode) {
  fs::path temporary;
  const int fd = open_temporary(to.path.parent_path(), mode, temporary);
  if (fd < 0) return last_error();
  const UnfinishedFile unfinished(temporary.string());
  const Reason why = close_after(fd, fill(fd, to, content));
  if (why.empty()) return rename_over(temporary, to);
  ::unlink(temporary.c_str());
  return why;
}

Reason replace(const Destination& to, std::string_view content) {
  // A file that may not be written must not be replaced either.
  if (to.exists && ::faccessat(AT_FDCWD, to.path.c_str(), W_OK, AT_EACCESS) != 0)
    return last_error();
  const mode_t mode = to.exists ? 0600 : 0666;  // less the umask
  Reason why;
  if (replace_by_nameless(to, content, mode, why)) return why;
  return replace_by_named(to, content, mode);
}

}  // namespace

std::string write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0 ? "no more data can be written" : last_error();
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Status write_file(const std::string& path, std::string_view content) {
  Destination to;
  Reason why;
  if (path != "-") why = find_destination(path, to);
  if (path == "-" || (why.empty() && is_standard_output(to))) {
    write_standard_output(::isatty(STDOUT_FILENO) != 0 ? printable_lines(content) : content);
    return flush_standard_output();
  }
  if (why.empty()) why = to.in_place ? write_in_place(to.path, content) : replace(to, content);
  if (why.empty()) return {};
  return fail(error_in(path, "PW0001", "cannot write `" + path + "`: " + why));
}

}  // namespace pw
