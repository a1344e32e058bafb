// Exports the questions of legality.hpp.
#include "rewriter/legality.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>

#include <fmt/format.h>

namespace pw {
namespace {

bool contains(const std::vector<NodeId>& nodes, NodeId node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

/// The value that a chain of views and in-place results goes back to.
ValueId root_of(const Graph& graph, ValueId value) {
  while (value.valid() && !graph.is_input(value)) {
    NodeId node = graph.producer(value);
    const Op& op = graph.op_of(node);
    std::size_t result = graph.result_index(value);
    std::optional<int> from;
    if (result < op.results.size()) from = op.results[result].from;
    if (!from && op.traits.view) from = 0;
    if (!from || static_cast<std::size_t>(*from) >= graph.operand_count(node)) return value;
    value = graph.operand(node, static_cast<std::size_t>(*from));
  }
  return value;
}

bool writes_any(const Graph& graph, NodeId node, const std::set<ValueId>& roots) {
  const Op& op = graph.op_of(node);
  for (std::size_t i = 0; i < op.operands.size() && i < graph.operand_count(node); ++i)
    if ((op.operands[i].mut || op.operands[i].out) &&
        roots.contains(root_of(graph, graph.operand(node, i))))
      return true;
  return false;
}

}  // namespace

ValueId result_value(const Graph& graph, const Rule& rule, const std::vector<NodeId>& nodes,
                     PatternValueId value) {
  const PatternValue& v = rule.values[value];
  return v.producer.valid()
             ? graph.result(nodes[v.producer.index], static_cast<std::size_t>(v.result))
             : ValueId();
}

std::vector<NodeId> own_nodes(const Graph& graph, const RuleLayout& layout,
                              const std::vector<NodeId>& nodes) {
  std::vector<NodeId> out;
  for (PatternNodeId id : layout.own) out.push_back(nodes[id.index]);
  std::sort(out.begin(), out.end(),
            [&](NodeId a, NodeId b) { return graph.label(a) < graph.label(b); });
  return out;
}

std::optional<Escape> find_escape(const Graph& graph, const RuleLayout& layout,
                                  const std::vector<NodeId>& nodes) {
  std::map<ValueId, std::size_t> inside;
  for (PatternNodeId id : layout.own) {
    NodeId node = nodes[id.index];
    for (std::size_t i = 0; i < graph.operand_count(node); ++i)
      if (graph.operand(node, i).valid()) ++inside[graph.operand(node, i)];
  }
  for (PatternValueId v : layout.consumed) {
    ValueId value = result_value(graph, *layout.rule, nodes, v);
    auto uses = inside.find(value);
    if (graph.output_count(value) == 0 &&
        graph.use_count(value) == (uses == inside.end() ? 0 : uses->second))
      continue;
    Escape escape{v, value, {}, graph.output_count(value) > 0};
    for (NodeId user : graph.users(value)) {
      bool own = std::any_of(layout.own.begin(), layout.own.end(),
                             [&](PatternNodeId id) { return nodes[id.index] == user; });
      if (!own) escape.users.push_back(user);
    }
    return escape;
  }
  return std::nullopt;
}

std::string describe(const Graph& graph, const RuleLayout& layout, const Escape& escape) {
  constexpr std::size_t kShown = 4;
  const std::string& name = layout.rule->values[escape.value].name;
  std::string out = fmt::format("`{}` is consumed by this rule, but it is also ",
                                name.empty() || name == "_"
                                    ? fmt::format("%{}", graph.value_name(escape.graph_value))
                                    : name);
  if (escape.output)
    out += escape.users.empty() ? "an output of the graph" : "an output of the graph, and ";
  for (std::size_t i = 0; i < escape.users.size() && i < kShown; ++i)
    out += fmt::format("{}%{} ({})", i == 0 ? "used by " : ", ", graph.node_name(escape.users[i]),
                       graph.op_of(escape.users[i]).name);
  if (escape.users.size() > kShown)
    out += fmt::format(" and {} more", escape.users.size() - kShown);
  return out;
}

Boundary boundary_of(const Graph& graph, const RuleLayout& layout, const std::vector<NodeId>& nodes,
                     const Env& env) {
  Boundary out;
  for (const std::string& name : layout.reads) {
    auto it = env.find(name);
    if (it == env.end()) continue;
    if (const auto* value = std::get_if<ValueId>(&it->second)) out.reads.push_back(*value);
    if (const auto* list = std::get_if<std::vector<ValueId>>(&it->second))
      out.reads.insert(out.reads.end(), list->begin(), list->end());
  }
  for (PatternValueId v : layout.outputs)
    out.writes.push_back(result_value(graph, *layout.rule, nodes, v));
  return out;
}

std::vector<NodeId> find_bad_path(const Graph& graph, const RuleLayout& layout,
                                  const std::vector<NodeId>& nodes, const Boundary& boundary) {
  std::vector<NodeId> own = own_nodes(graph, layout, nodes);
  std::set<NodeId> producers;
  std::uint64_t last = 0;
  for (ValueId v : boundary.reads) {
    NodeId p = graph.producer(v);
    if (!p.valid() || contains(own, p)) continue;
    producers.insert(p);
    last = std::max(last, graph.label(p));
  }
  // Only a user that stands before the last producer can lie on such a path.
  std::map<NodeId, NodeId> came_from;
  std::queue<NodeId> frontier;
  auto visit = [&](ValueId value, NodeId from) {
    for (UseId u = graph.first_use(value); u.valid(); u = graph.next_use(u)) {
      NodeId user = graph.user(u);
      if (graph.label(user) > last || contains(own, user) || !came_from.emplace(user, from).second)
        continue;
      frontier.push(user);
    }
  };
  for (ValueId value : boundary.writes)
    if (graph.label(graph.producer(value)) < last) visit(value, {});
  while (!frontier.empty()) {
    NodeId node = frontier.front();
    frontier.pop();
    if (producers.contains(node)) {
      std::vector<NodeId> path;
      for (NodeId n = node; n.valid(); n = came_from[n]) path.push_back(n);
      std::reverse(path.begin(), path.end());
      return path;
    }
    for (std::size_t i = 0; i < graph.result_count(node); ++i) visit(graph.result(node, i), node);
  }
  return {};
}

Facts with_conditions(const Graph& graph, const std::vector<Condition>& conditions) {
  Facts facts = graph.facts;
  const Dims& dims = graph.context().dims;
  for (const Condition& c : conditions) {
    const auto factor = c.divides && c.b.valid() ? dims.value(c.b) : std::nullopt;
    if (!factor || *factor < 1 || !c.a.valid() || !dims.is_symbol(c.a)) continue;
    SymbolFact& fact = facts.symbols[dims.symbols(c.a).front()];
    const std::int64_t least = std::lcm(fact.multiple, *factor);
    if (least > 0 && least <= fact.max) fact.multiple = least;
  }
  return facts;
}

std::string describe_path(const Graph& graph, const std::vector<NodeId>& path) {
  std::string out = "the new nodes would read what depends on their own results, through ";
  for (std::size_t i = 0; i < path.size(); ++i)
    out += fmt::format("{}%{} ({})", i == 0 ? "" : " → ", graph.node_name(path[i]),
                       graph.op_of(path[i]).name);
  return out;
}

bool is_barrier(const Op& op) {
  return op.traits.effect || std::any_of(op.operands.begin(), op.operands.end(),
                                         [](const OperandDecl& d) { return d.mut || d.out; });
}

bool has_barriers(const Graph& graph) {
  std::map<OpId, bool> known;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
    auto [it, fresh] = known.try_emplace(graph.op(n), false);
    if (fresh) it->second = is_barrier(graph.op_of(n));
    if (it->second) return true;
  }
  return false;
}

std::optional<NodeId> find_barrier(const Graph& graph, const RuleLayout& layout,
                                   const std::vector<NodeId>& nodes, const Boundary& boundary) {
  std::vector<NodeId> own = own_nodes(graph, layout, nodes);
  bool effectful = false;
  std::set<ValueId> roots;
  for (NodeId n : own) {
    effectful = effectful || is_barrier(graph.op_of(n));
    for (std::size_t i = 0; i < graph.operand_count(n); ++i)
      roots.insert(root_of(graph, graph.operand(n, i)));
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      roots.insert(root_of(graph, graph.result(n, i)));
  }
  for (ValueId v : boundary.reads) roots.insert(root_of(graph, v));
  for (NodeId n = own.front(); n != own.back(); n = graph.next(n)) {
    if (contains(own, n) || !is_barrier(graph.op_of(n))) continue;
    if (effectful || writes_any(graph, n, roots)) return n;
  }
  return std::nullopt;
}

}  // namespace pw
