// The help line for each near-miss code.
#pragma once

#include <string>
#include <string_view>

namespace pw {

/// Returns the help that applies to every near miss of the code; empty if there is none.
std::string help_for(std::string_view code);

}  // namespace pw
