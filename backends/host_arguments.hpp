// The skeleton of a call, as the attribute `call` of an opaque node holds it: its argument text,
// with %2 for operand 2 and $name for an attribute.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/host_functions.hpp"

namespace pw {

/// Parses the arguments of a skeleton; `$name` is a value whose `word` is the name.
Result<std::vector<HostArgument>> read_skeleton(std::string_view text, const std::string& place);
/// Returns the call of a node without a skeleton. Attributes arg0, arg1, … take their positions,
/// operands fill the other positions in order, and all other attributes become keywords.
[[nodiscard]] std::vector<HostArgument> plain_skeleton(std::size_t operands,
                                                       const std::vector<std::string>& attributes);

}  // namespace pw
