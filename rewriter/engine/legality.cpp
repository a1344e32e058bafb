// Legality by local searches. A rewrite replaces a set of nodes as if they ran at one place, so
// three conditions must hold: no consumed value is read outside, no path leads from an output back
// to an operand (convexity), and no effect is crossed.
//
// Convexity is a breadth-first search from the outputs, cut off at the label of the last producer
// that the right side reads: labels rise along every path, so a node after that label cannot reach
// it. A barrier is searched for between the first and the last matched node only. The cost
// therefore depends on the distance between the match's nodes, not on the size of the graph.
// Invariant: the order list is topological, which both cut-offs rely on.
#include "rewriter/engine/legality.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <unordered_map>

#include <fmt/format.h>

#include "rewriter/engine/written_names.hpp"

namespace pw {
namespace {

/// Returns the value at the origin of a chain of views and in-place results.
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

/// Returns true if the node writes to memory that one of the values shares.
bool writes_any(const Graph& graph, NodeId node, const std::set<ValueId>& roots) {
  const Op& op = graph.op_of(node);
  for (std::size_t i = 0; i < op.operands.size() && i < graph.operand_count(node); ++i)
    if ((op.operands[i].mut || op.operands[i].out) &&
        roots.contains(root_of(graph, graph.operand(node, i))))
      return true;
  return false;
}

}  // namespace

NodeSet::NodeSet(std::vector<NodeId> nodes) : nodes_(std::move(nodes)) {
  std::sort(nodes_.begin(), nodes_.end());
}

bool NodeSet::contains(NodeId node) const {
  return std::binary_search(nodes_.begin(), nodes_.end(), node);
}

std::vector<ValueId> result_values(const Graph& graph, const Rule& rule, const Match& match,
                                   PatternValueId value) {
  const PatternValue& v = rule.values[value];
  std::vector<ValueId> out;
  if (!v.producer.valid()) return out;
  const auto result = static_cast<std::size_t>(v.result);
  if (MembersId members = rule.nodes[v.producer].members; members.valid()) {
    const auto& ids = rule.members[members].nodes;
    const auto at =
        static_cast<std::size_t>(std::find(ids.begin(), ids.end(), v.producer) - ids.begin());
    for (const std::vector<NodeId>& member : match.members[members.index])
      out.push_back(graph.result(member[at], result));
    return out;
  }
  NodeId node = match.nodes[v.producer.index];
  const std::size_t end = v.list ? graph.result_count(node) : result + 1;
  for (std::size_t i = result; i < end; ++i) out.push_back(graph.result(node, i));
  return out;
}

std::vector<NodeId> all_nodes(const Match& match) {
  std::vector<NodeId> out;
  for (NodeId n : match.nodes)
    if (n.valid()) out.push_back(n);
  for (const auto& members : match.members)
    for (const auto& member : members) out.insert(out.end(), member.begin(), member.end());
  return out;
}

std::vector<NodeId> own_nodes(const Graph& graph, const RuleLayout& layout,
                              const std::vector<NodeId>& nodes) {
  std::vector<NodeId> out;
  for (PatternNodeId id : layout.own)
    if (nodes[id.index].valid()) out.push_back(nodes[id.index]);
  std::sort(out.begin(), out.end(),
            [&](NodeId a, NodeId b) { return graph.label(a) < graph.label(b); });
  return out;
}

std::vector<NodeId> own_nodes(const Graph& graph, const RuleLayout& layout, const Match& match) {
  const Rule& rule = *layout.rule;
  std::vector<NodeId> out = own_nodes(graph, layout, match.nodes);
  if (match.members.empty()) return out;
  for (std::size_t i = 0; i < match.members.size(); ++i)
    if (rule.nodes[rule.members[MembersId(i)].root].own())
      for (const auto& member : match.members[i])
        out.insert(out.end(), member.begin(), member.end());
  std::sort(out.begin(), out.end(),
            [&](NodeId a, NodeId b) { return graph.label(a) < graph.label(b); });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::optional<Escape> find_escape(const Graph& graph, const RuleLayout& layout,
                                  const Match& match) {
  const std::vector<NodeId> own = own_nodes(graph, layout, match);
  std::unordered_map<ValueId, std::size_t> inside;  // looked up only
  for (NodeId node : own)
    for (std::size_t i = 0; i < graph.operand_count(node); ++i)
      if (graph.operand(node, i).valid()) ++inside[graph.operand(node, i)];
  for (PatternValueId v : layout.consumed)
    for (ValueId value : result_values(graph, *layout.rule, match, v)) {
      auto uses = inside.find(value);
      if (graph.output_count(value) == 0 &&
          graph.use_count(value) == (uses == inside.end() ? 0 : uses->second))
        continue;
      Escape escape{v, value, graph.producer(value), {}, graph.output_count(value) > 0};
      const NodeSet inner(own);
      for (NodeId user : graph.users(value))
        if (!inner.contains(user)) escape.users.push_back(user);
      return escape;
    }
  return std::nullopt;
}

std::string describe(const Graph& graph, const RuleLayout& layout, const Escape& escape) {
  constexpr std::size_t kShown = 4;
  const PatternValue& value = layout.rule->values[escape.value];
  std::string out = fmt::format("`{}` is consumed by this rule, but it is also ",
                                value.name.empty() || value.name == "_" || value.list
                                    ? fmt::format("%{}", graph.value_name(escape.graph_value))
                                    : with_written_names(value.name));
  if (escape.output)
    out += escape.users.empty() ? "an output of the graph" : "an output of the graph, and ";
  for (std::size_t i = 0; i < escape.users.size() && i < kShown; ++i)
    out += fmt::format("{}%{} ({})", i == 0 ? "used by " : ", ", graph.node_name(escape.users[i]),
                       graph.op_of(escape.users[i]).name);
  if (escape.users.size() > kShown)
    out += fmt::format(" and {} more", escape.users.size() - kShown);
  return out;
}

Boundary boundary_of(const Graph& graph, const RuleLayout& layout, const Match& match) {
  Boundary out;
  for (const std::string& name : layout.reads) {
    auto it = match.env.find(name);
    if (it == match.env.end()) continue;
    if (const auto* value = std::get_if<ValueId>(&it->second)) out.reads.push_back(*value);
    if (const auto* list = std::get_if<std::vector<ValueId>>(&it->second))
      out.reads.insert(out.reads.end(), list->begin(), list->end());
  }
  for (PatternValueId v : layout.outputs)
    for (ValueId value : result_values(graph, *layout.rule, match, v)) out.writes.push_back(value);
  return out;
}

namespace {

/// Returns the shortest path by breadth-first search; `came_from` holds the tree of the search.
std::vector<NodeId> bad_path(const Graph& graph, const NodeSet& own, const Boundary& boundary) {
  std::set<NodeId> producers;
  std::uint64_t last = 0;
  for (ValueId v : boundary.reads) {
    NodeId p = v.valid() ? graph.producer(v) : NodeId();
    if (!p.valid() || own.contains(p)) continue;
    producers.insert(p);
    last = std::max(last, graph.label(p));
  }
  // Only a user that precedes the last producer can lie on such a path.
  std::map<NodeId, NodeId> came_from;
  std::queue<NodeId> frontier;
  auto visit = [&](ValueId value, NodeId from) {
    for (UseId u = graph.first_use(value); u.valid(); u = graph.next_use(u)) {
      NodeId user = graph.user(u);
      if (graph.label(user) > last || own.contains(user) || !came_from.emplace(user, from).second)
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

}  // namespace

std::vector<NodeId> find_bad_path(const Graph& graph, const RuleLayout& layout, const Match& match,
                                  const Boundary& boundary) {
  return bad_path(graph, NodeSet(own_nodes(graph, layout, match)), boundary);
}

std::vector<NodeId> find_bad_path(const Graph& graph, const RuleLayout& layout,
                                  const std::vector<NodeId>& nodes, const Boundary& boundary) {
  return bad_path(graph, NodeSet(own_nodes(graph, layout, nodes)), boundary);
}

namespace {

/// Narrows a symbol's fact by `symbol op number`; ignores a condition that would leave no size.
void narrow(SymbolFact& fact, Compare op, std::int64_t number) {
  std::int64_t min = fact.min, max = fact.max;
  switch (op) {
    case Compare::eq: min = std::max(min, number), max = std::min(max, number); break;
    case Compare::ge: min = std::max(min, number); break;
    case Compare::gt: min = std::max(min, number + 1); break;
    case Compare::le: max = std::min(max, number); break;
    case Compare::lt: max = std::min(max, number - 1); break;
    case Compare::ne: break;
  }
  if (min <= max) fact.min = min, fact.max = max;
}

}  // namespace

Facts with_conditions(const Graph& graph, const std::vector<Condition>& conditions) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 40;
  Facts facts = graph.facts;
  const Dims& dims = graph.context().dims;
  for (const Condition& c : conditions) {
    const auto number = c.b.valid() ? dims.value(c.b) : std::nullopt;
    if (!number || *number < 1 || *number > kLargest || !c.a.valid() || !dims.is_symbol(c.a))
      continue;
    SymbolFact& fact = facts.symbols[dims.symbols(c.a).front()];
    if (!c.divides) {
      narrow(fact, c.op, *number);
      continue;
    }
    const std::int64_t least = std::lcm(fact.multiple, *number);
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
  const OpTable& ops = graph.context().ops;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (const OpId op(i); graph.node_count(op) > 0 && is_barrier(ops[op])) return true;
  return false;
}

namespace {

/// Returns a barrier between the first and the last own node that the match depends on: any if the
/// match has an effect, else one that writes to a value it uses.
std::optional<NodeId> barrier_between(const Graph& graph, const std::vector<NodeId>& own,
                                      const Boundary& boundary) {
  const NodeSet inner(own);
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
    if (inner.contains(n) || !is_barrier(graph.op_of(n))) continue;
    if (effectful || writes_any(graph, n, roots)) return n;
  }
  return std::nullopt;
}

}  // namespace

std::optional<NodeId> find_barrier(const Graph& graph, const RuleLayout& layout, const Match& match,
                                   const Boundary& boundary) {
  return barrier_between(graph, own_nodes(graph, layout, match), boundary);
}

std::optional<NodeId> find_barrier(const Graph& graph, const RuleLayout& layout,
                                   const std::vector<NodeId>& nodes, const Boundary& boundary) {
  return barrier_between(graph, own_nodes(graph, layout, nodes), boundary);
}

}  // namespace pw
