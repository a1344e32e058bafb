// Resolves what a family leaves to its rows: the numbers of operands and results of an op, and its
// attributes.
#pragma once

#include "dsl/syntax/ast.hpp"
#include "graph/build.hpp"

namespace pw {

/// Expands `q... = k.quant(y, s...)` of an op with a fixed number of operands or results: as many
/// names as the op has remaining places, on both sides of the rule. Lists of ops that take any
/// number stay.
void name_list_elements(const Context& context, ast::Rule& rule, Diagnostics& out);

/// Resolves `..` on the right of an op that the left side lacks: forwards the attributes that the
/// only open op of the left leaves open, by name. An attribute without a place on the right is an
/// error.
void forward_attributes(const Context& context, ast::Rule& rule, Diagnostics& out);

}  // namespace pw
