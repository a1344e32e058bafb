// Reads expressions of symbols in the notation of sympy's srepr, in which PT2 archives store dims.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pw::pt2 {

/// Converts "Add(Symbol('s0', positive=True), Integer(-3))" → "(s0 + -3)", which parse_dim reads;
/// functions other than sums, products and powers keep their names. Nothing for other texts,
/// nesting deeper than 32 calls, or a symbol that is not a word.
[[nodiscard]] std::optional<std::string> dim_of_sympy(std::string_view text);

}  // namespace pw::pt2
