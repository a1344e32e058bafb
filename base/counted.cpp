#include "base/counted.hpp"

#include <algorithm>
#include <array>

namespace pw {

std::string plural_of(std::string_view noun) {
  constexpr std::array<std::string_view, 5> kHissing{"s", "x", "z", "ch", "sh"};
  const std::string out(noun);
  if (noun.ends_with("is")) return out.substr(0, out.size() - 2) + "es";
  if (noun.ends_with("y") && noun.size() > 1 &&
      std::string_view("aeiou").find(noun[noun.size() - 2]) == std::string_view::npos)
    return out.substr(0, out.size() - 1) + "ies";
  const bool hisses = std::any_of(kHissing.begin(), kHissing.end(),
                                  [&](std::string_view end) { return noun.ends_with(end); });
  return out + (hisses ? "es" : "s");
}

}  // namespace pw
