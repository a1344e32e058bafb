// SHA-256, as 64 hexadecimal digits, and keys made of named parts.
#pragma once

#include <string>
#include <string_view>

namespace pw {

[[nodiscard]] std::string sha256(std::string_view bytes);

/// What an object is made from, part by part: no two different lists of parts give one text.
class KeyParts {
 public:
  KeyParts& add(std::string_view name, std::string_view value);
  [[nodiscard]] std::string digest() const { return sha256(text_); }

 private:
  std::string text_;
};

}  // namespace pw
