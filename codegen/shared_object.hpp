// A shared object loaded from bytes in memory, for the lifetime of the handle.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/diagnostic.hpp"

namespace pw {

class SharedObject {
 public:
  SharedObject() = default;
  /// Loads the object. Fails with PW1223 if the bytes cannot be loaded.
  static Result<SharedObject> load(std::string_view bytes);
  /// Returns a function by its C name, or null.
  [[nodiscard]] void* symbol(const char* name) const;

 private:
  struct Loaded;
  std::shared_ptr<Loaded> loaded_;
};

}  // namespace pw
