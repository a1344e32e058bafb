#include "codegen/cache/object.hpp"

#include <fmt/format.h>

#include "codegen/cache/digest.hpp"

namespace pw {

std::string seal_object(std::string_view kind, std::string_view key, std::string_view payload) {
  std::string out = fmt::format("piecewise-object 1 {} {} {} {}\n", kind, key, payload.size(),
                                KeyParts().add(kind, key).add("payload", payload).digest());
  out += payload;
  return out;
}

/// The kind is read, and then the whole file must be what sealing gives.
std::optional<OpenedObject> open_object(std::string_view file, std::string_view key) {
  constexpr std::string_view kHead = "piecewise-object 1 ";
  const std::size_t end = file.substr(0, 256).find('\n');
  if (end == std::string_view::npos || file.rfind(kHead, 0) != 0) return std::nullopt;
  const std::string_view rest = file.substr(kHead.size(), end - kHead.size());
  const std::string_view kind = rest.substr(0, rest.find(' '));
  const std::string_view payload = file.substr(end + 1);
  if (file.substr(0, end + 1) !=
      std::string_view(seal_object(kind, key, payload)).substr(0, end + 1))
    return std::nullopt;
  return OpenedObject{std::string(kind), std::string(payload)};
}

}  // namespace pw
