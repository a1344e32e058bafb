// Lets a user's files declare names that the library declares too. In such a file, and in files
// that use it, the name means the file's own item; in the library's files and imported graphs it
// means the library's.
#pragma once

#include <set>
#include <vector>

#include "dsl/syntax/ast.hpp"
#include "graph/context.hpp"

namespace pw {

/// Resolves conflicts with the library's names. A user's op or pattern that conflicts with a
/// library op is renamed to `file.name`. For any other conflict the library's item is renamed. Each
/// gets a warning (PW0206), and all mentions follow. Declarations that repeat the library's are
/// removed. `uses`: the files that each file uses, directly or indirectly.
void resolve_library_conflicts(Context& context, std::vector<ast::File>& files,
                               const std::vector<std::set<std::size_t>>& uses, Diagnostics& out);

}  // namespace pw
