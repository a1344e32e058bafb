// What both sides of a pair cost at real sizes.
#pragma once

#include <map>

#include "discover/sizes.hpp"

namespace pw::discover {

struct Weighed {
  std::int64_t before = 0, after = 0;  ///< bytes
};
/// `real`: by the size that an axis was found with; 1024 elements where it says none. Nothing where
/// a side is not well typed at these sizes.
[[nodiscard]] std::optional<Weighed> weighed(Context& context, const General& general,
                                             const std::map<std::int64_t, std::int64_t>& real);

}  // namespace pw::discover
