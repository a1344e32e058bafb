#include "lsp/uris.hpp"

#include <charconv>

#include "base/characters.hpp"

namespace pw::cli {
namespace {

constexpr std::string_view kScheme = "file://";

bool stays(char c) {
  return is_letter_or_digit(c) || std::string_view("-._~/").find(c) != std::string_view::npos;
}

}  // namespace

std::string path_of_uri(std::string_view uri) {
  if (!uri.starts_with(kScheme)) return {};
  uri.remove_prefix(kScheme.size());
  const std::size_t root = uri.find('/');
  if (root == std::string_view::npos) return {};
  if (const std::string_view host = uri.substr(0, root); !host.empty() && host != "localhost")
    return {};
  uri.remove_prefix(root);
  uri = uri.substr(0, uri.find_first_of("?#"));
  std::string out;
  for (std::size_t i = 0; i < uri.size(); ++i) {
    unsigned byte = 0;
    const char* digits = uri.data() + i + 1;
    if (uri[i] == '%' && i + 2 < uri.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += uri[i];
    }
  }
  // The system ends a path at a NUL, so the file would differ from the one that was checked.
  return out.find('\0') == std::string::npos ? out : std::string();
}

std::string uri_of_path(std::string_view path) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out(kScheme);
  for (const char c : path) {
    if (stays(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return out;
}

}  // namespace pw::cli
