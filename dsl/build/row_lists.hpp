// What a family leaves to its rows: how many operands and results an op has, and which attributes.
#pragma once

#include "dsl/syntax/ast.hpp"
#include "graph/build.hpp"

namespace pw {

/// `q... = k.quant(y, s...)` of an op with a fixed number of operands or results: as many names as
/// that op has places left, in both sides of the rule. Lists of ops that take any number stay.
void name_list_elements(const Context& context, ast::Rule& rule, Diagnostics& out);

/// `..` on the right of an op that the left side lacks: what the one open op of the left leaves
/// open, by the same names. An attribute that has no place on the right is an error.
void forward_attributes(const Context& context, ast::Rule& rule, Diagnostics& out);

}  // namespace pw
