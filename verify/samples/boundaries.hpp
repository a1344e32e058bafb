// Boundary values of a rule's guards. `d % 8 == 0` holds at 8 but not at 7 or 9; `n in 1..256`
// holds at 1 and 256 but not at 257. Also declares the facts that guards such as `replicated(x,
// group)` require.
#pragma once

#include <string>
#include <vector>

#include "dsl/ruleset.hpp"
#include "graph/graph.hpp"

namespace pw {

/// Returns the integers in a guard, as literals or as names in `known`, in text order.
[[nodiscard]] std::vector<std::int64_t> numbers_in(const Expr& guard, const Env& known = {});

struct GuardBoundary {
  std::string variable;
  std::int64_t value = 0;
  bool allowed = false;  ///< all guards on this variable alone hold
};

/// Returns true if a variable of the pattern is a dim, not an integer attribute.
[[nodiscard]] bool is_dim_variable(const Rule& rule, std::string_view name);

/// Returns the boundaries of each variable that a guard constrains alone: the least and greatest
/// allowed value with a rejected neighbor, and these neighbors. `known` holds params and table
/// cells. Values above `most` are omitted.
std::vector<GuardBoundary> boundaries_of(const RuleSet& rules, const Rule& rule, const Env& known,
                                         std::int64_t most = 8192);

/// Declares the input facts that the guards `replicated(x, group)`, `weight(x)`, and `constant(x)`
/// require, and no others. `bound` maps the rule's variables to the graph.
void declare_facts(Graph& graph, const Rule& rule, const Env& bound);

}  // namespace pw
