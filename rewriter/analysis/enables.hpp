// The enabling relation of rules: which rule builds an op that another one matches, and the order
// of rules that follows from it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "rewriter/analysis/effects.hpp"

namespace pw {

struct Enables {
  /// Rule as written, families and alternatives together; in the suggested order, then by name.
  struct Entry {
    std::string name;
    std::size_t step = 0;   ///< after all rules that enable it; the rules of a cycle share one
    bool in_cycle = false;  ///< it can, over some steps, enable itself
    std::vector<RuleId> variants;
    struct Edge {
      std::size_t to = 0;            ///< in `rules`
      std::vector<std::string> ops;  ///< built here, matched there
    };
    std::vector<Edge> edges;
  };
  std::vector<Entry> rules;
};

/// Computes the relation over `rules`; each rule once, however many variants it has.
Enables find_enables(const RuleSet& set, const std::vector<RuleId>& rules);
std::vector<RuleId> all_rules(const RuleSet& set);

/// Returns the shortest path from a rule back to itself within these; empty if there is none.
std::vector<std::size_t> shortest_cycle(const Enables& enables,
                                        const std::set<std::string>& within);

/// Returns a picture for Graphviz: an arrow from a rule to those it enables, labelled by the ops.
std::string enables_to_dot(const Enables& enables);

}  // namespace pw
