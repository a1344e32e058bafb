// Where a rule's guards begin and cease to hold: `d % 8 == 0` holds at 8 and not at 7 or 9,
// `n in 1..256` at 1 and at 256 and not at 257; and where `replicated(x, group)` does.
#pragma once

#include <string>
#include <vector>

#include "dsl/ruleset.hpp"
#include "graph/graph.hpp"

namespace pw {

/// The whole numbers that a guard names, as numbers or as what is known by a name, in text order.
[[nodiscard]] std::vector<std::int64_t> numbers_in(const Expr& guard, const Env& known = {});

struct GuardBoundary {
  std::string variable;
  std::int64_t value = 0;
  bool allowed = false;  ///< every guard on the variable alone holds
};

/// Whether a variable of the pattern stands for a dim, and not for a whole-number attribute.
[[nodiscard]] bool is_dim_variable(const Rule& rule, std::string_view name);

/// For each variable that a guard constrains alone: the least and the greatest allowed value that
/// has a refused neighbour, and their refused neighbours. `known` holds params and table cells.
/// Values above `most` are left out.
std::vector<GuardBoundary> boundaries_of(const RuleSet& rules, const Rule& rule, const Env& known,
                                         std::int64_t most = 8192);

/// Declares of the inputs that x is made of what the guards `replicated(x, group)`, `weight(x)` and
/// `constant(x)` of the rule ask, and nothing more. `bound` holds what the variables are in the
/// graph.
void declare_facts(Graph& graph, const Rule& rule, const Env& bound);

}  // namespace pw
