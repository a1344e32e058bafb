// SHA-256, as 64 hexadecimal digits, and keys made of named parts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pw {

constexpr std::size_t kDigestLength = 64;

[[nodiscard]] std::string sha256(std::string_view bytes);
/// Returns true if a text has the form of a digest.
[[nodiscard]] bool is_digest(std::string_view text);

struct KeyPart {
  std::string name, value;
};

/// Builds the text that identifies an object from named parts; different lists of parts give
/// different texts.
class KeyParts {
 public:
  KeyParts& add(std::string_view name, std::string_view value);
  /// Names what the object is made for, such as a kernel; not a part of the key.
  KeyParts& of(std::string_view subject);
  [[nodiscard]] std::string digest() const { return sha256(text_); }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::string& subject() const { return subject_; }
  /// Reads the text of a key up to the first error.
  [[nodiscard]] static std::vector<KeyPart> read(std::string_view text);

 private:
  std::string text_, subject_;
};

}  // namespace pw
