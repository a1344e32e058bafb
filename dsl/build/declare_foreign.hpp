// Declares `foreign` items of the tree as ForeignOps of the context, and checks them.
#pragma once

#include "dsl/program.hpp"

namespace pw {

/// Declares all items of the loaded files; declares nothing if one of them is wrong.
void declare_foreign(Context& context, const Program& program, Diagnostics& out);

}  // namespace pw
