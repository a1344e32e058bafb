// Division rounded up: the number of units that hold a count.
#pragma once

#include <cstdint>

namespace pw {

[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit;
}

}  // namespace pw
