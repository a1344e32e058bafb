#include "codegen/cache/folder.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environment.hpp"

namespace pw {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Diagnostics> refuse(const std::string& path, const std::string& why) {
  return fail(error_in(path, "PW1230", "cannot be the compile cache: " + why,
                       "set PWR_CACHE_DIR to a folder that you own"));
}

}  // namespace

bool is_cache_disabled() {
  const std::string value = environment("PWR_DISABLE_CACHE");
  return !value.empty() && value != "0";
}

std::string default_cache_folder() {
  if (std::string own = environment("PWR_CACHE_DIR"); !own.empty()) return own;
  if (const std::string base = environment("XDG_CACHE_HOME"); !base.empty())
    return base + "/piecewise";
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/piecewise";
}

std::string default_read_only_folder() { return environment("PWR_CACHE_READ_ONLY_DIR"); }

Status take_private_folder(const std::string& path) {
  std::error_code ignored;
  if (const fs::path parent = fs::path(path).parent_path(); !parent.empty())
    fs::create_directories(parent, ignored);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return refuse(path, std::string("it cannot be created: ") + std::strerror(errno));
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return refuse(path, std::strerror(errno));
  if (!S_ISDIR(info.st_mode)) return refuse(path, "it is not a folder");
  if (info.st_uid != ::geteuid())
    return refuse(
        path, fmt::format("it belongs to user {}, and this is user {}", info.st_uid, ::geteuid()));
  if ((info.st_mode & 0022) != 0)
    return refuse(path, fmt::format("others can write to it (mode {:o})", info.st_mode & 0777));
  if ((info.st_mode & 0077) != 0 && ::chmod(path.c_str(), 0700) != 0)
    return refuse(path, std::string("others can read it: ") + std::strerror(errno));
  return {};
}

std::string distrust(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return std::strerror(errno);
  if (!S_ISDIR(info.st_mode)) return "it is not a folder";
  if (info.st_uid != 0 && info.st_uid != ::geteuid())
    return fmt::format("it belongs to user {}", info.st_uid);
  if ((info.st_mode & 0022) != 0)
    return fmt::format("others can write to it (mode {:o})", info.st_mode & 0777);
  return "";
}

}  // namespace pw
