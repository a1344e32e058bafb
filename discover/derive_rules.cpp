#include "discover/derive_rules.hpp"

#include <algorithm>
#include <optional>

#include "rewriter/rewriter.hpp"
#include "verify/samples/instance.hpp"

namespace pw {
namespace {

/// Appends the nodes of `from` and maps its values in `values`, which already contains the inputs.
void append(const Graph& from, Graph& to, std::map<ValueId, ValueId>& values) {
  for (NodeId n = from.first(); n.valid(); n = from.next(n)) {
    NodeSpec spec;
    spec.op = from.op(n);
    spec.attributes = from.attributes(n);
    for (ValueId v : from.operands(n))
      spec.operands.push_back(v.valid() ? values.at(v) : ValueId());
    for (std::size_t i = 0; i < from.result_count(n); ++i)
      spec.results.push_back({from.type(from.result(n, i)), ""});
    const NodeId made = to.add_node(spec);
    for (std::size_t i = 0; i < from.result_count(n); ++i)
      values[from.result(n, i)] = to.result(made, i);
  }
}

/// The graph before and after the rule, over the same inputs; nothing if the rule cannot be
/// applied.
std::optional<Graph> both_sides(const Instance& instance, const RuleSet& rules) {
  Graph after = instance.graph;
  if (!apply_match(after, RunRules(rules), instance.match)) return std::nullopt;
  Graph both(instance.graph.context_ptr(), "both");
  both.facts = instance.graph.facts;
  std::map<ValueId, ValueId> values;
  for (ValueId v : instance.graph.inputs())
    values[v] = both.add_input(instance.graph.value_name(v), instance.graph.type(v),
                               instance.graph.input_kind(v));
  for (const Graph* side : {&instance.graph, static_cast<const Graph*>(&after)}) {
    std::map<ValueId, ValueId> own = values;
    append(*side, both, own);
    for (ValueId v : side->outputs()) both.add_output(own.at(v));
  }
  return both;
}

struct Goal {
  std::vector<Graph> graphs;
  std::string why;  // there are none
};

Goal goal_of(const LoadedRules& rules, RuleId id, std::uint64_t seed) {
  InstanceOptions options;
  options.wanted = 3;
  options.attempts = 4000;
  options.seed = seed;
  const Instances made = make_instances(rules.set, id, rules.params, options);
  Goal out;
  for (const Instance& instance : made.found)
    if (auto graph = both_sides(instance, rules.set)) out.graphs.push_back(std::move(*graph));
  if (out.graphs.empty())
    out.why = made.why.empty() ? "no graph could be generated for it" : made.why;
  return out;
}

/// Removes unneeded rules from `first` to `last`, halving the range each time.
template <class Enough>
void leave_out_unneeded(discover::Derivations& others, std::size_t first, std::size_t last,
                        const Enough& enough) {
  if (first == last) return;
  for (std::size_t i = first; i < last; ++i) others.leave_out(i, true);
  if (enough()) return;
  for (std::size_t i = first; i < last; ++i) others.leave_out(i, false);
  if (last - first == 1) return;
  const std::size_t middle = first + (last - first) / 2;
  // Remove the last-found rules first, because the first are the smallest.
  leave_out_unneeded(others, middle, last, enough);
  leave_out_unneeded(others, first, middle, enough);
}

bool follows(const Goal& goal, discover::Derivations& others) {
  return !goal.graphs.empty() &&
         std::all_of(goal.graphs.begin(), goal.graphs.end(), [&](const Graph& graph) {
           return others.derives(graph, graph.outputs().size() / 2);
         });
}

}  // namespace

std::size_t Derived::count() const {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.derived; }));
}

Derived derive_rules(const LoadedRules& rules, discover::Derivations& others, std::uint64_t seed) {
  Derived out;
  out.given = others.size();
  std::vector<Goal> reached;
  for (std::size_t r = 0; r < rules.set.rules.size(); ++r) {
    const Rule& rule = rules.set.rules[RuleId(r)];
    Goal goal = goal_of(rules, RuleId(r), seed);
    Derived::Row row{rule.name, follows(goal, others), ""};
    if (goal.graphs.empty())
      row.reason = goal.why;
    else if (!row.derived)
      row.reason = "the sides were not merged";
    if (row.derived) reached.push_back(std::move(goal));
    out.rows.push_back(std::move(row));
  }
  leave_out_unneeded(others, 0, others.size(), [&] {
    return std::all_of(reached.begin(), reached.end(),
                       [&](const Goal& goal) { return follows(goal, others); });
  });
  out.used = others.size() - others.left_out();
  return out;
}

}  // namespace pw
