// Shared parts of the four builders that turn a pattern into a graph: symbolic instances (dsl),
// frozen patterns (rewriter/analysis), random instances (verify/samples), and the general case
// (proof/sketch).
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

using PatternValues = IdVec<PatternValueId, ValueId>;

/// Returns the type that an op declares for an operand; null if it declares none.
[[nodiscard]] const TypeExpr* declared_type(const Op& op, std::size_t operand);
/// Returns the types of operands; invalid for an absent one.
[[nodiscard]] std::vector<TypeId> types_of(const Graph& graph, const std::vector<ValueId>& values);
/// Returns the type of a node's first operand that is neither absent nor a number, or an invalid
/// id.
[[nodiscard]] TypeId first_operand_type(const Graph& graph, const Rule& rule,
                                        const PatternNode& node, const PatternValues& values);
/// Returns the dtype of this name, or the one that a variable of this name is bound to.
[[nodiscard]] std::optional<DType> dtype_of(const std::string& name, const Env& env);
/// Returns the value at the boundary of the first guard `name == expr` with a known `expr`, of
/// either side and one of these operators.
[[nodiscard]] std::optional<Attribute> value_by_guard(
    const Graph& graph, const Rule& rule, const std::string& name, const Env& env,
    std::initializer_list<std::string_view> operators);

/// Makes this the value of the pattern's value, and unifies its stated types. Returns false if one
/// does not fit.
bool bind_value(const Graph& graph, const Rule& rule, PatternValueId id, ValueId value,
                PatternValues& values, Env& env);
/// Adds a literal: a rank-0 constant of the widest dtype. It is weak, so the other operand's dtype
/// decides.
ValueId add_literal(Graph& graph, const Attribute& value);
/// Returns unused names for the results of a node, empty for those without a name.
[[nodiscard]] std::vector<std::string> result_names(Graph& graph, const Rule& rule,
                                                    const PatternNode& node);

}  // namespace pw
