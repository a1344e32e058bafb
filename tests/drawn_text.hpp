// A text whose parts are drawn in order.
#pragma once

#include <string>

namespace pw::test {

/// `Text{"add(", a(), ", ", b(), ")"}` calls `a` before `b`: braces have their parts evaluated from
/// left to right, where a sum of strings or the arguments of a call leave the order to the
/// compiler, and with it what a seed stands for.
struct Text : std::string {
  template <class... Parts>
  explicit Text(const Parts&... parts) {
    (append(parts), ...);
  }
};

}  // namespace pw::test
