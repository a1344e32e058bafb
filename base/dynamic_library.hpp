// Libraries that are loaded when they are first needed, and their functions.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <system_error>
#include <vector>

#include <dlfcn.h>

namespace pw {

/// The first of `names` that can be loaded; never closed. Null, and the loader's reason in
/// `problem`, where none can.
inline void* load_library(std::initializer_list<const char*> names, std::string& problem) {
  for (const char* name : names)
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  const char* reason = ::dlerror();
  problem = reason != nullptr ? reason : "it cannot be loaded";
  return nullptr;
}

/// Each of `places` as a path from the folder of the program or library that `inside` is in. Empty
/// where that cannot be told.
inline std::vector<std::string> places_beside(const void* inside,
                                              std::initializer_list<const char*> places) {
  Dl_info own{};
  if (::dladdr(inside, &own) == 0) return {};
  std::error_code ignored;
  const auto folder = std::filesystem::canonical(own.dli_fname, ignored).parent_path();
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
  /// What a user is told of it; empty where nothing is missing.
  [[nodiscard]] std::string problem() const {
    return missing_.empty() ? std::string() : "it lacks " + missing_;
  }

 private:
  void* library_;
  std::string missing_;
};

}  // namespace pw
