// SHA-256, as 64 hexadecimal digits, and keys made of named parts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pw {

constexpr std::size_t kDigestLength = 64;

[[nodiscard]] std::string sha256(std::string_view bytes);
/// Returns true if a text has the form of a digest.
[[nodiscard]] bool is_digest(std::string_view text);

/// Builds the text that identifies an object from named parts; different lists of parts give
/// different texts.
class KeyParts {
 public:
  KeyParts& add(std::string_view name, std::string_view value);
  [[nodiscard]] std::string digest() const { return sha256(text_); }

 private:
  std::string text_;
};

}  // namespace pw
