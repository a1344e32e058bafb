// Compares declarations of ops, and names ops that differ from the library's.
#pragma once

#include <string>

#include "graph/context.hpp"

namespace pw {

/// Returns true if `mine` declares the same op as `library`: the same operands, attributes,
/// defaults, result types and body, up to the names of type variables, and no trait that `library`
/// lacks.
[[nodiscard]] bool says_the_same(const Op& library, const Op& mine);

/// Returns true if the place is in a file of the library.
[[nodiscard]] bool is_in_library(const Context& context, Span span);

/// Returns `mine.silu` for the op `silu` of mine.pwr: a name that no other op has.
[[nodiscard]] std::string name_beside_library(const Context& context, const std::string& file,
                                              const Op& op);

/// Returns the warning that `name` means the declaration at `mine` there, not the library's at
/// `library`.
[[nodiscard]] Diagnostic shadows_library(const std::string& what, const std::string& name,
                                         Span mine, Span library, const std::string& help);

}  // namespace pw
