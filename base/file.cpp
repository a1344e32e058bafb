// Exports read_file and write_file.
#include "base/file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include <sys/stat.h>
#include <unistd.h>

namespace pw {
namespace {

Diagnostic cannot(const std::string& verb, const std::string& path, const std::string& why) {
  return error_in(path, "PW0001", "cannot " + verb + " `" + path + "`: " + why);
}

Result<std::string> read_all(std::FILE* file, const std::string& path, std::size_t limit) {
  std::string content;
  char buffer[1 << 16];
  while (std::size_t n = std::fread(buffer, 1, sizeof buffer, file)) {
    if (content.size() + n > limit)
      return fail(cannot("read", path, "it is larger than " + std::to_string(limit) + " bytes"));
    content.append(buffer, n);
  }
  if (std::ferror(file)) return fail(cannot("read", path, std::strerror(errno)));
  return content;
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  if (path == "-") return read_all(stdin, "standard input", limit);
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    return fail(cannot("read", path, "it is a folder"));
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return fail(cannot("read", path, std::strerror(errno)));
  Result<std::string> content = read_all(file, path, limit);
  std::fclose(file);
  return content;
}

Result<std::monostate> write_file(const std::string& path, std::string_view content) {
  if (path == "-") {
    std::cout.write(content.data(), static_cast<std::streamsize>(content.size()));
    std::cout.flush();
    return std::monostate{};
  }
  std::string temporary = path + ".tmp-XXXXXX";
  int fd = ::mkstemp(temporary.data());
  if (fd < 0) return fail(cannot("write", path, std::strerror(errno)));
  std::size_t written = 0;
  bool good = true;
  while (good && written < content.size()) {
    ssize_t n = ::write(fd, content.data() + written, content.size() - written);
    if (n < 0 && errno == EINTR) continue;
    good = n > 0;
    if (good) written += static_cast<std::size_t>(n);
  }
  mode_t mask = ::umask(0);  // mkstemp makes 0600; an output file has the usual mode
  ::umask(mask);
  good = good && ::fchmod(fd, 0666 & ~mask) == 0;
  good = ::close(fd) == 0 && good;
  good = good && std::rename(temporary.c_str(), path.c_str()) == 0;
  if (good) return std::monostate{};
  std::string why = std::strerror(errno);
  ::unlink(temporary.c_str());
  return fail(cannot("write", path, why));
}

}  // namespace pw
