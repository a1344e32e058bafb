#include "codegen/cache/digest.hpp"

// EVP, which the manual prefers, would bring 4 MB of providers into each program.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <array>
#include <charconv>
#include <optional>

#include <openssl/sha.h>

namespace pw {

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256_CTX state;
  SHA256_Init(&state);
  SHA256_Update(&state, bytes.data(), bytes.size());
  SHA256_Final(digest.data(), &state);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : digest) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

bool is_digest(std::string_view text) {
  return text.size() == kDigestLength &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

KeyParts& KeyParts::add(std::string_view name, std::string_view value) {
  text_ += std::to_string(name.size()) + ":";
  text_ += name;
  text_ += std::to_string(value.size()) + ":";
  text_ += value;
  return *this;
}

KeyParts& KeyParts::of(std::string_view subject) {
  subject_ = subject;
  return *this;
}

std::vector<KeyPart> KeyParts::read(std::string_view text) {
  const auto next = [&]() -> std::optional<std::string> {
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || digits >= text.size() || size > text.size() - digits - 1)
      return std::nullopt;
    std::string out(text.substr(digits + 1, size));
    text.remove_prefix(digits + 1 + size);
    return out;
  };
  std::vector<KeyPart> out;
  while (!text.empty()) {
    auto name = next(), value = name ? next() : std::nullopt;
    if (!value) break;
    out.push_back({std::move(*name), std::move(*value)});
  }
  return out;
}

}  // namespace pw
