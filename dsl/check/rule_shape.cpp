#include <algorithm>

#include "algebra/union_find.hpp"
#include "dsl/check/check.hpp"
#include "dsl/syntax/suggest.hpp"

namespace pw {
namespace {

/// Disjoint sets of pattern values; a node joins all of its operands and results.
using Pieces = UnionFind<std::size_t>;

/// Returns the piece of each value, then of each node. Absent nodes connect nothing else.
Pieces pieces_of(const Rule& rule, int negation) {
  Pieces pieces(rule.values.size() + rule.nodes.size());
  for (std::size_t i = 0; i < rule.nodes.size(); ++i) {
    const PatternNode& node = rule.nodes[PatternNodeId(i)];
    if (node.negation >= 0 && node.negation != negation) continue;
    const auto join = [&](PatternValueId id) {
      if (id.valid()) pieces.join(rule.values.size() + i, id.index);
    };
    std::for_each(node.operands.begin(), node.operands.end(), join);
    std::for_each(node.results.begin(), node.results.end(), join);
  }
  return pieces;
}

/// Reports a consumed value that a surviving node reads.
void check_consumed(const Rule& rule, Diagnostics& out) {
  for (const PatternNode& node : rule.nodes) {
    if (!node.given) continue;
    for (PatternValueId id : rule.consumed) {
      if (std::find(node.operands.begin(), node.operands.end(), id) == node.operands.end())
        continue;
      const PatternValue& value = rule.values[id];
      Diagnostic d = error_at(node.span, "PW0288",
                              (value.name.empty() ? "a value" : in_ticks(value.name)) +
                                  " is consumed, but read here in `given`, which survives",
                              "bind it again on the right, or put its node in `given` too");
      d.secondary.push_back({value.span, "bound here, but not on the right"});
      out.push_back(std::move(d));
    }
  }
}

}  // namespace

void check_rule_shape(const CheckedRule& checked, Diagnostics& out) {
  const Rule& rule = *checked.rule;
  const bool consumes = std::any_of(rule.nodes.begin(), rule.nodes.end(),
                                    [](const PatternNode& n) { return n.own(); });
  if (!consumes) {
    out.push_back(error_at(rule.name_span, "PW0284",
                           "this rule replaces nothing: its whole pattern is `given`",
                           "move the nodes that it replaces out of `given { }`"));
  } else if (rule.outputs.empty()) {
    out.push_back(error_at(
        rule.name_span, "PW0285",
        "this rule does not rebind any result of its pattern, so it would only delete nodes",
        "rebind the results whose users should read the new value, as in `y = …` on both sides"));
  } else {
    check_consumed(rule, out);
  }
}

void check_connected(const CheckedRule& checked, Diagnostics& out) {
  const Rule& rule = *checked.rule;
  if (rule.nodes.empty()) return;
  for (std::size_t i = 1; i < rule.nodes.size(); ++i) {
    const PatternNode& node = rule.nodes[PatternNodeId(i)];
    const Pieces pieces = pieces_of(rule, node.negation);
    if (pieces.root(rule.values.size() + i) == pieces.root(rule.values.size())) continue;
    Diagnostic d = error_at(node.span, "PW0286",
                            "this part of the pattern is not connected to the rest, so it would "
                            "match any pair of places",
                            "let the parts share a value, or make two rules");
    d.secondary.push_back({rule.nodes[PatternNodeId(0)].span, "the rest starts here"});
    out.push_back(std::move(d));
    return;
  }
}

}  // namespace pw
