// From an op's declaration in the tree to an Op of the op table, and the checks that need the whole
// table afterwards.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "dsl/syntax/ast.hpp"
#include "graph/context.hpp"

namespace pw {

/// The Op a declaration means; nothing, and diagnostics, when it is malformed. Bodies are not
/// looked into: ops may refer to each other in any order.
std::optional<Op> lower_op(Context& context, const ast::OpItem& item, Diagnostics& out);
/// Declares it. An op of the same name must agree in signature and in its body. `local`: by a
/// graph's own text.
OpId declare_op(Context& context, const ast::OpItem& item, Diagnostics& out, bool local = false);
/// Whether the word is a trait that an op may have.
[[nodiscard]] bool is_trait(std::string_view word);
[[nodiscard]] std::vector<std::string> trait_names();
[[nodiscard]] bool has_trait(const Op& op, std::string_view trait);
/// A literal as an attribute of that kind; nothing, and a diagnostic, when it is none.
std::optional<Attribute> literal_attribute(const Expr& expr, AttributeKind kind, bool nullable,
                                           Dims& dims, Diagnostics& out);
std::optional<AttributeKind> attribute_kind_named(std::string_view name);

/// The bodies of declared ops, all that is known of them: the checks below in their order.
void check_bodies(const Context& context, const std::vector<OpId>& ops, Diagnostics& out);
/// The body of a declared op: names bound before use and once, ops known, calls well formed,
/// results bound.
void check_op_body(const Context& context, const Op& op, Diagnostics& out);
/// No op is defined, over any number of steps, by itself.
void check_op_recursion(const Context& context, const std::vector<OpId>& ops, Diagnostics& out);
/// Bodies give the types that their signatures declare (PW0225), from calls that fit the operands
/// (PW0226), where that can be told. Ops that call one in `unsound` are left out. No op may be
/// defined by itself.
void check_body_types(const Context& context, const std::vector<OpId>& ops,
                      const std::set<OpId>& unsound, Diagnostics& out);

}  // namespace pw
