// Declares an op of the tree in the op table, and provides the checks that need the whole table
// afterwards.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "dsl/syntax/ast.hpp"
#include "graph/context.hpp"

namespace pw {

/// Returns the Op of a declaration; nothing, and diagnostics, if it is malformed. Bodies are not
/// checked: ops may refer to each other in any order.
std::optional<Op> lower_op(Context& context, const ast::OpItem& item, Diagnostics& out);
/// Declares an op. An op of the same name must agree in signature and body. `local`: by a graph's
/// own text.
OpId declare_op(Context& context, const ast::OpItem& item, Diagnostics& out, bool local = false);
/// Returns true if the word is a trait that an op may have.
[[nodiscard]] bool is_trait(std::string_view word);
[[nodiscard]] std::vector<std::string> trait_names();
[[nodiscard]] bool has_trait(const Op& op, std::string_view trait);
/// Returns a literal as an attribute of that kind; nothing, and a diagnostic, if it does not fit.
std::optional<Attribute> literal_attribute(const Expr& expr, AttributeKind kind, bool nullable,
                                           Dims& dims, Diagnostics& out);
std::optional<AttributeKind> attribute_kind_named(std::string_view name);

/// Checks the bodies of declared ops: runs the checks below in their order.
void check_bodies(const Context& context, const std::vector<OpId>& ops, Diagnostics& out);
/// Checks the body of a declared op: names bound before use and once, ops known, calls well formed,
/// results bound.
void check_op_body(const Context& context, const Op& op, Diagnostics& out);
/// Checks that no op is defined by itself, directly or indirectly.
void check_op_recursion(const Context& context, const std::vector<OpId>& ops, Diagnostics& out);
/// Checks that bodies give the types that their signatures declare (PW0225), from calls that fit
/// the operands (PW0226), if that is decidable. Ops that call one in `unsound` are omitted. No op
/// may be defined by itself.
void check_body_types(const Context& context, const std::vector<OpId>& ops,
                      const std::set<OpId>& unsound, Diagnostics& out);

}  // namespace pw
