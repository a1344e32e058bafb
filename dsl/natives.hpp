// Externs: functions and predicates of rules that are written in C++. They are declared and typed
// in .pwr, and bound by name here or by the program that loads the rules.
#pragma once

#include <string>
#include <vector>

#include "dsl/program.hpp"

namespace pw {

/// Binds a function of the given kinds, unless the name is bound already. Its arguments are checked
/// against the kinds first; if one is a dim without a known number, the result is unknown.
void bind_native(Context& context, const std::string& name, std::vector<AttributeKind> kinds,
                 Native function);
/// Binds the functions that the library's rules use: fused_output_quant, min_tokens.
void bind_library_natives(Context& context);

/// Checks the kinds of declared externs, that each is bound, and the arguments of their calls in
/// rules.
void check_externs(const Context& context, const Program& program, Diagnostics& out);

}  // namespace pw
