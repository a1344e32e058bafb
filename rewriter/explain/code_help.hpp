// The help line for each near-miss code.
#pragma once

#include <string>
#include <string_view>

namespace pw {

/// Help that holds for every near miss of the code; empty where there is none.
std::string help_for(std::string_view code);

}  // namespace pw
