// A shared object made of bytes in memory, loaded for as long as the handle lives.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/diagnostic.hpp"

namespace pw {

class SharedObject {
 public:
  SharedObject() = default;
  /// PW1223 when the bytes cannot be loaded.
  static Result<SharedObject> load(std::string_view bytes);
  /// A function by its C name; null when absent.
  [[nodiscard]] void* symbol(const char* name) const;

 private:
  struct Loaded;
  std::shared_ptr<Loaded> loaded_;
};

}  // namespace pw
