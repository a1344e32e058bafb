// Inlines one alternative of a shared pattern at a call of it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dsl/editing/rename.hpp"
#include "dsl/program.hpp"

namespace pw {

/// Position of a call in a rule, as indices, which are valid in every copy of the rule.
struct Site {
  int clause = -1;  ///< -1: among the statements of the body
  std::size_t statement = 0;
  std::vector<std::size_t> args;  ///< from the statement's value down; empty: the value itself
  [[nodiscard]] bool top() const { return args.empty(); }
  [[nodiscard]] std::vector<Statement>& statements(ast::Body& body) const;
  [[nodiscard]] Expr& call(ast::Body& body) const;
};

/// Replaces the call at `site`. Names local to the alternative get `suffix`, so that uses stay
/// distinct; its clauses become clauses of the body. A call of a recursive pattern in it is one
/// level deeper than the call it replaces. Among `members` of a list the alternative is inlined as
/// one expression, and must be a tree.
void inline_pattern(const Context& context, const Program& program, ast::Body& body,
                    const Site& site, const ast::Pattern& pattern, std::size_t alternative,
                    const std::string& suffix, bool members = false);
/// Returns true if the alternative, inlined at the call, is a tree: it has one result, and
/// everything bound in it or made for its operands is read once.
[[nodiscard]] bool is_tree(const ast::Body& alternative, const ast::Pattern& pattern,
                           const Expr& call);

/// Returns the depth of a call of a recursive pattern inside others; 0 if the rule calls it itself.
[[nodiscard]] inline std::int64_t recursion_depth(const Expr& call) { return call.integer; }

/// Resolves `y = x` on the left, which an absent optional node leaves, as another name of x. An
/// output keeps its statement, which is then diagnosed.
void resolve_aliases(ast::Rule& rule);

}  // namespace pw
