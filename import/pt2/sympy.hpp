// Expressions of symbols as sympy's srepr writes them, in which PT2 archives keep dims.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pw::pt2 {

/// "Add(Symbol('s0', positive=True), Integer(-3))" → "(s0 + -3)", which parse_dim reads; functions
/// other than sums, products and powers keep their names. Nothing for what is no such text, is
/// nested deeper than 32 calls, or has a symbol that is no word.
[[nodiscard]] std::optional<std::string> dim_of_sympy(std::string_view text);

}  // namespace pw::pt2
