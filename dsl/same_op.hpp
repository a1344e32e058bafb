// Whether two declarations are of one op, and what an op is called that is not the library's.
#pragma once

#include <string>

#include "graph/context.hpp"

namespace pw {

/// Whether `mine` declares no other op than `library`: the same operands, attributes, defaults,
/// result types and body, up to the names of type variables, and no trait that `library` lacks.
[[nodiscard]] bool says_the_same(const Op& library, const Op& mine);

/// Whether the place is in a file of the library.
[[nodiscard]] bool is_in_library(const Context& context, Span span);

/// `mine.silu` for the op `silu` of mine.pwr: a name that no other op has.
[[nodiscard]] std::string name_beside_library(const Context& context, const std::string& file,
                                              const Op& op);

/// The warning that `name` means the declaration at `mine` there, not the library's at `library`.
[[nodiscard]] Diagnostic shadows_library(const std::string& what, const std::string& name,
                                         Span mine, Span library, const std::string& help);

}  // namespace pw
