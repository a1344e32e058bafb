// Libraries that are loaded when they are first needed, and their functions.
#pragma once

#include <initializer_list>
#include <string>

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
