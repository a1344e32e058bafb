// Lets the files of a user declare what the library declares too. In such a file, and in files that
// use it, the name means the file's own; the library's files and imported graphs mean the
// library's.
#pragma once

#include <set>
#include <vector>

#include "dsl/syntax/ast.hpp"
#include "graph/context.hpp"

namespace pw {

/// Gives an op or pattern of a user that the library's ops stand in the way of the name
/// `file.name`, and every other item of the library that a user's stands in the way of, wherever
/// they are mentioned; with a warning (PW0206) for each. Declarations that say what the library
/// says are left out. `uses`: by file, the files that it uses, directly or not.
void keep_names_apart(Context& context, std::vector<ast::File>& files,
                      const std::vector<std::set<std::size_t>>& uses, Diagnostics& out);

}  // namespace pw
