// Inlines one alternative of a shared pattern at a call of it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dsl/editing/rename.hpp"
#include "dsl/program.hpp"

namespace pw {

/// Where a call stands in a rule: indices, so that they hold in every copy of the rule.
struct Site {
  int clause = -1;  ///< -1: among the statements of the body
  std::size_t statement = 0;
  std::vector<std::size_t> args;  ///< from the statement's value down; empty: the value itself
  [[nodiscard]] bool top() const { return args.empty(); }
  [[nodiscard]] std::vector<Statement>& statements(ast::Body& body) const;
  [[nodiscard]] Expr& call(ast::Body& body) const;
};

/// Replaces the call at `site`. What the alternative binds for itself gets `suffix`, so that uses
/// stay apart; its clauses become clauses of the body. A call of a recursive pattern in it is one
/// level deeper than the call it replaces. Among `members` of a list the alternative goes in as one
/// expression; it must be a tree.
void inline_pattern(const Context& context, const Program& program, ast::Body& body,
                    const Site& site, const ast::Pattern& pattern, std::size_t alternative,
                    const std::string& suffix, bool members = false);
/// Whether the alternative, put in the place of the call, is a tree: one result, and what is bound
/// in it or made for its operands is read once.
[[nodiscard]] bool is_tree(const ast::Body& alternative, const ast::Pattern& pattern,
                           const Expr& call);

/// How deep a call of a recursive pattern stands in others; 0 where the rule calls it itself.
[[nodiscard]] inline std::int64_t recursion_depth(const Expr& call) { return call.integer; }

/// `y = x` on the left, which an absent optional node leaves, makes y another name of x; an output
/// keeps its statement, which is then diagnosed.
void resolve_aliases(ast::Rule& rule);

}  // namespace pw
