#include "base/io/file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/io/read_paths.hpp"

namespace pw {
namespace {

Diagnostic cannot_read(const std::string& path, const std::string& why) {
  return error_in(path, "PW0001", "cannot read `" + path + "`: " + why);
}

Result<std::string> read_all(std::FILE* file, const std::string& path, std::size_t limit) {
  std::string content;
  char buffer[1 << 16];
  while (std::size_t n = std::fread(buffer, 1, sizeof buffer, file)) {
    if (content.size() + n > limit)
      return fail(cannot_read(path, "it is larger than " + std::to_string(limit) + " bytes"));
    content.append(buffer, n);
  }
  if (std::ferror(file)) return fail(cannot_read(path, std::strerror(errno)));
  return content;
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  if (path == "-") return read_all(stdin, "standard input", limit);
  note_read_path(path);
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    return fail(cannot_read(path, "it is a folder"));
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return fail(cannot_read(path, std::strerror(errno)));
  Result<std::string> content = read_all(file, path, limit);
  std::fclose(file);
  return content;
}

std::string file_stamp(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return {};
  return fmt::format("{} {}.{:09}", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

}  // namespace pw
