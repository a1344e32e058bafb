// Elements of lists by number, as in `sizes[-1]`.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/attribute.hpp"

namespace pw {

/// Returns the position of an index; negative ones count from the end. Nothing if it is out of
/// range or not a whole number.
inline std::optional<std::size_t> place_in(std::size_t length, const Attribute& number) {
  const auto* place = std::get_if<std::int64_t>(&number);
  const auto most = static_cast<std::int64_t>(length);
  if (place == nullptr || *place < -most || *place >= most) return std::nullopt;
  return static_cast<std::size_t>(*place < 0 ? *place + most : *place);
}

}  // namespace pw
