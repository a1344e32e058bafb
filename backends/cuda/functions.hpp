// Functions of a library that was loaded.
#pragma once

#include <string>

#include <dlfcn.h>

namespace pw::cuda {

/// Fills pointers to functions, and keeps the name of the first that the library lacks.
class FunctionFinder {
 public:
  explicit FunctionFinder(void* library) : library_(library) {}
  template <class F>
  void operator()(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library_, name));
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

}  // namespace pw::cuda
