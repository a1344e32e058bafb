// Exports sha256 and KeyParts.
#include "backends/cache/digest.hpp"

#include <openssl/evp.h>

#include "base/assert.hpp"

namespace pw {

std::string sha256(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const bool done =
      EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) == 1;
  PW_ASSERT(done && size == 32, "the system's library knows SHA-256");
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (unsigned int i = 0; i < size; ++i) {
    out += kDigits[digest[i] >> 4];
    out += kDigits[digest[i] & 15];
  }
  return out;
}

KeyParts& KeyParts::add(std::string_view name, std::string_view value) {
  text_ += std::to_string(name.size()) + ":";
  text_ += name;
  text_ += std::to_string(value.size()) + ":";
  text_ += value;
  return *this;
}

}  // namespace pw
