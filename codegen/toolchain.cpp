#include "codegen/toolchain.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include "base/environment.hpp"
#include "base/io/file.hpp"
#include "base/try.hpp"
#include "codegen/guarded_run.hpp"

namespace pw {
namespace {

namespace fs = std::filesystem;

bool executable(const fs::path& path) {
  std::error_code ignored;
  return ::access(path.c_str(), X_OK) == 0 && !fs::is_directory(path, ignored);
}

std::string identity_of(const std::string& compiler) {
  std::error_code error;
  const fs::path resolved = fs::canonical(compiler, error);
  const std::string stamp = error ? "" : file_stamp(resolved.string());
  return stamp.empty() ? compiler : resolved.string() + " " + stamp;
}

/// A relative folder could begin with a dash and be parsed as an option.
fs::path temporary_base() {
  std::error_code ignored;
  const fs::path base = fs::absolute(fs::temp_directory_path(ignored), ignored);
  return base.empty() ? fs::path("/tmp") : base;
}

std::string how_it_ended(int status, const GuardLimits& limits) {
  if (status == kTookTooLong) return fmt::format("was stopped after {} seconds", limits.seconds);
  if (status == kSaidTooMuch)
    return fmt::format("was stopped when it had written {} bytes of messages", limits.log_bytes);
  return fmt::format("ended with status {}", status);
}

std::string first_words(const std::string& log) {
  constexpr std::size_t kMost = 16384;
  std::ifstream file(log, std::ios::binary);
  std::string out(kMost, '\0');
  file.read(out.data(), static_cast<std::streamsize>(kMost));
  out.resize(static_cast<std::size_t>(file.gcount()));
  return out.size() < kMost ? out : out + "…";
}

}  // namespace

std::string find_executable(const std::string& name) {
  if (name.find('/') != std::string::npos) return executable(name) ? name : "";
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    if (folder.empty()) continue;
    const fs::path candidate = fs::path(folder) / name;
    if (executable(candidate)) return candidate.string();
  }
  return "";
}

std::string host_compiler() {
  if (const std::string chosen = environment("CXX"); !chosen.empty()) {
    if (std::string found = find_executable(chosen); !found.empty()) return found;
  }
  for (const char* name : {"c++", "g++", "clang++"}) {
    if (std::string found = find_executable(name); !found.empty()) return found;
  }
  return "";
}

PrivateFolder::PrivateFolder() {
  std::string text = temporary_base() / "piecewise-XXXXXX";
  if (::mkdtemp(text.data())) path_ = text;
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Toolchain Toolchain::find() {
  Toolchain found{host_compiler(), {}};
  if (found.present()) found.identity = identity_of(found.compiler);
  return found;
}

Result<std::string> Toolchain::shared_object(const std::string& source,
                                             std::span<const std::string> flags) const {
  if (!present())
    return fail(error_in("compiler", "PW1222", "no C++ compiler was found",
                         "put c++, g++ or clang++ on PATH, or set CXX"));
  const PrivateFolder folder;
  if (folder.path().empty())
    return fail(error_in("compiler", "PW1222", "no temporary folder could be made",
                         "set TMPDIR to a folder that can be written"));
  const std::string text = folder.path() + "/kernel.cpp", object = folder.path() + "/kernel.so",
                    log = folder.path() + "/log";
  PW_TRY(write_file(text, source));
  std::vector<std::string> arguments{compiler, "-x", "c++"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  // Kernels call nothing of the C++ library, for which the linker would look every time.
  arguments.insert(arguments.end(), {"-shared", "-fPIC", "-nostartfiles", "-nodefaultlibs", text,
                                     "-o", object, "-lm", "-lc", "-lgcc"});
  GuardLimits limits;
  limits.folder = folder.path();
  const int status = guarded_run(std::move(arguments), log, limits);
  if (status == 0) return read_file(object);
  return fail(
      error_in("compiler", "PW1223",
               fmt::format("{} {}\n{}", compiler, how_it_ended(status, limits), first_words(log))));
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, found;
  // Names of the two lines on x86 and on Arm.
  for (const char* wanted : {"model name", "flags", "CPU part", "Features"}) {
    file.clear();
    file.seekg(0);
    while (std::getline(file, line)) {
      if (line.rfind(wanted, 0) != 0) continue;
      found += line + "\n";
      break;
    }
  }
  return found;
}

}  // namespace pw
