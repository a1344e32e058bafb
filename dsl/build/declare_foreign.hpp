// From `foreign` items in the tree to ForeignOps of the context, and their checks.
#pragma once

#include "dsl/program.hpp"

namespace pw {

/// All items of the files in hand; nothing is declared where one of them is wrong.
void declare_foreign(Context& context, const Program& program, Diagnostics& out);

}  // namespace pw
