// The skeleton of a call, as the attribute `call` of an opaque node holds it: the text of its
// arguments, with %2 for operand 2 and $name for the attribute of that name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/host_functions.hpp"

namespace pw {

/// An argument of a skeleton; `$name` is a value whose `word` is the name.
Result<std::vector<HostArgument>> read_skeleton(std::string_view text, const std::string& place);
/// The call of a node without a skeleton: attributes arg0, arg1, … stand at their positions,
/// operands at the others in order, all other attributes are keywords.
[[nodiscard]] std::vector<HostArgument> plain_skeleton(std::size_t operands,
                                                       const std::vector<std::string>& attributes);

}  // namespace pw
