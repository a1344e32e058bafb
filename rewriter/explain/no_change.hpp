// The code of a match whose result the graph holds already.
#pragma once

#include <string_view>

namespace pw {

inline constexpr std::string_view kNoChange = "PW1105";

}  // namespace pw
