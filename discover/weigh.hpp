// Costs of both sides of a pair at real sizes.
#pragma once

#include <map>

#include "discover/sizes.hpp"

namespace pw::discover {

struct Weighed {
  std::int64_t before = 0, after = 0;  ///< bytes
};
/// Returns the bytes of both sides. `real` maps a small size to the original size; 1024 if it has
/// none. Nothing if a side is not well typed at these sizes.
[[nodiscard]] std::optional<Weighed> weighed(Context& context, const General& general,
                                             const std::map<std::int64_t, std::int64_t>& real);

}  // namespace pw::discover
