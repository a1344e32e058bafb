#include "base/printable.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw {
namespace {

bool control(std::uint32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

/// Returns true for marks that change the direction in which text is shown.
bool turns_direction(std::uint32_t code) {
  return code == 0x61C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

/// Replaces every character that is neither harmless nor `kept` by what `escape` returns.
template <class Kept, class Escape>
std::string escaped(std::string_view text, Kept kept, Escape escape) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character c = first_character(text);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(c.length, 1));
    if (harmless(c) || (c.length > 0 && kept(c.code)))
      out += bytes;
    else
      out += escape(c, bytes);
    text.remove_prefix(bytes.size());
  }
  return out;
}

std::string for_people(const Utf8Character& c, std::string_view bytes) {
  if (c.length > 1) return fmt::format("\\u{{{:x}}}", c.code);
  return fmt::format("\\x{:02x}", static_cast<unsigned char>(bytes[0]));
}

bool lays_out(std::uint32_t code) { return code == '\n' || code == '\t'; }

}  // namespace

bool harmless(const Utf8Character& c) {
  return c.length > 0 && !control(c.code) && !turns_direction(c.code);
}

std::string printable(std::string_view text) {
  std::string out = escaped(text, [](std::uint32_t code) { return code == '\t'; }, for_people);
  std::replace(out.begin(), out.end(), '\t', ' ');
  return out;
}

std::string printable_lines(std::string_view text) { return escaped(text, lays_out, for_people); }

std::string printable_json(std::string_view text) {
  return escaped(text, lays_out, [](const Utf8Character& c, std::string_view) {
    return c.length == 0 ? std::string("\\ufffd") : fmt::format("\\u{:04x}", c.code);
  });
}

}  // namespace pw
