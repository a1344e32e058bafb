// Visits every name of a statement, expression or type, in text order, with its syntactic place.
// Shared by name resolution, families and all checks. Pure.
#pragma once

#include <functional>
#include <string_view>

#include "graph/statement.hpp"

namespace pw {

enum class Place : std::uint8_t {
  binder,     ///< left of `=`
  operand,    ///< an operand, or alone right of `=`
  callee,     ///< an op, a dtype, or a dtype variable used as a cast
  function,   ///< a function called in an attribute, a guard or a type
  attribute,  ///< the value of an attribute, `{k}` included
  guard,
  property,  ///< x of `x.shape` and of `size(x, i)`
  dtype,
  dim,
  sequence,  ///< `*s`
};

struct Occurrence {
  std::string_view name;
  Span span;
  Place place = Place::operand;
  bool bare = false;  ///< nothing around it: `[n]`, `{k}`, `{k = n}`, `[a, b]` in an attribute
  const Expr* expr = nullptr;  ///< none for binders and `{k}`
  const Binder* binder = nullptr;
  bool spread = false;            ///< `xs...`, or all of it is counted: `count(xs)`
  bool element = false;           ///< `xs[0]`
  const Expr* members = nullptr;  ///< the `many` statement's value, or the spread, `relu(x)...`,
                                  ///< that contains it
};
using Visit = std::function<void(const Occurrence&)>;

void visit_statement(const Statement& statement, const Visit& visit);
/// Visits an expression in operand place: calls are ops, names are values.
void visit_operand(const Expr& expr, const Visit& visit);
/// Visits an expression in attribute, guard or dim place: calls are functions.
void visit_scalar(const Expr& expr, Place place, const Visit& visit, bool bare = true);
void visit_type(const TypeExpr& type, const Visit& visit);

/// Visits every call of an op in the statement (infix not included), outer before inner.
void visit_calls(const Statement& statement, const std::function<void(const Expr&)>& visit);
/// Adds the names without a dot that an expression reads, except dtypes.
void collect_paths(const Expr& expr, std::vector<std::string>& names);
/// Returns the name of the primitive op of an infix operator on values; empty if there is none.
[[nodiscard]] std::string_view primitive_of_infix(std::string_view symbol);

}  // namespace pw
