// The one namespace of a rule: values, dims, dtypes, sequences and attributes. The first occurrence
// of a name decides its kind.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "dsl/syntax/ast.hpp"
#include "graph/context.hpp"

namespace pw {

enum class NameKind : std::uint8_t { value, dim, dtype, sequence, attribute };
[[nodiscard]] std::string_view name(NameKind kind);

struct Name {
  NameKind kind = NameKind::value;
  Span span;                        ///< where it is bound first
  bool result = false;              ///< a value bound by a statement of the pattern
  bool given = false;               ///< … inside `given`
  bool attribute_variable = false;  ///< a free value that binds a constant's number
  bool captured = false;            ///< bound by an attribute: `{k}` or `{k = x}`
  bool typed = false;               ///< a value with a type annotation, which constrains
  int left = 0;                     ///< occurrences in the pattern
  int guards = 0;
  int right = 0;         ///< reads on the right side
  bool rebound = false;  ///< a binder on the right
  bool dropped = false;  ///< `_ = name`
  bool list = false;     ///< is a list: an element for each member, or the rest of operands
  bool negated = false;  ///< bound in `unless` only
  /// The `many` or the spread that contains all of its places on the left; null: none, or several.
  const Expr* members = nullptr;
};

struct RuleNames {
  std::map<std::string, Name, std::less<>> names;  ///< of the left side
  [[nodiscard]] const Name* find(std::string_view name) const;
};

/// Names that a rule's names may not shadow, and its guards may read.
struct OuterNames {
  std::set<std::string, std::less<>> params;
  std::string table_variable;
};

/// The pattern's statements with those of its `given` clauses, in text order.
struct PatternStatement {
  const Statement* statement = nullptr;
  bool given = false;
};
std::vector<PatternStatement> pattern_statements(const ast::Body& body);
/// Returns true for an operand spread of a call, `relu(x)...`, which is matched once for every
/// operand.
[[nodiscard]] bool is_member_spread(const Expr& expr);
/// Returns true for `_ = name`, which drops a captured attribute on purpose.
[[nodiscard]] bool is_drop(const Statement& statement);

/// Returns the number in `xs[2]`; none if it is not a literal.
[[nodiscard]] std::optional<std::int64_t> element_of(const Expr& index);

/// Returns true for `[d] * tp`.
[[nodiscard]] bool is_repetition(const Expr& expr);

RuleNames collect_names(const Context& context, const ast::Rule& rule, const OuterNames& outer,
                        Diagnostics& out);

}  // namespace pw
