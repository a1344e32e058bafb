// Libraries that are loaded on first use, and lookup of their functions.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <system_error>
#include <vector>

#include <dlfcn.h>
#include <link.h>

namespace pw {

/// Loads the first of `names` that exists and never closes it. On failure returns null and stores
/// the loader's reason in `problem`.
inline void* load_library(std::initializer_list<const char*> names, std::string& problem) {
  for (const char* name : names)
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  const char* reason = ::dlerror();
  problem = reason != nullptr ? reason : "it cannot be loaded";
  return nullptr;
}

/// Returns each of `places` as an absolute path, relative to the folder of the program or library
/// that contains `inside`. Empty if that folder is unknown.
inline std::vector<std::string> places_beside(const void* inside,
                                              std::initializer_list<const char*> places) {
  Dl_info own{};
  link_map* map = nullptr;
  if (::dladdr1(inside, &own, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || !map)
    return {};
  // A library has its path here, but the program has the first word of its command line, which
  // names another file if the program was found in PATH.
  const std::filesystem::path file = *map->l_name == 0 ? "/proc/self/exe" : map->l_name;
  if (!file.is_absolute()) return {};
  std::error_code failed;
  const auto folder = std::filesystem::canonical(file, failed).parent_path();
  if (failed) return {};
  std::vector<std::string> out;
  for (const char* place : places) out.push_back(folder / place);
  return out;
}

/// Fills pointers to functions and data, and keeps the name of the first that the library lacks.
class FunctionFinder {
 public:
  explicit FunctionFinder(void* library) : library_(library) {}
  template <class Pointer>
  void operator()(Pointer& to, const char* name) {
    to = reinterpret_cast<Pointer>(::dlsym(library_, name));
    if (to == nullptr && missing_.empty()) missing_ = name;
  }
  [[nodiscard]] const std::string& missing() const { return missing_; }
  /// Returns the message for the user; empty if nothing is missing.
  [[nodiscard]] std::string problem() const {
    return missing_.empty() ? std::string() : "it lacks " + missing_;
  }

 private:
  void* library_;
  std::string missing_;
};

}  // namespace pw
