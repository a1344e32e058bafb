// Merges versions by node id and computes one topological order for all of them. Nodes of a later
// version are inserted after their predecessor in it. If the edges of all versions together form a
// cycle, the nodes of its strongly connected component get separate copies from the version that
// introduced one of its edges. Invariant: every edge of every version points forwards.
#include "viz/union.hpp"

#include <set>

#include "base/assert.hpp"
#include "graph/compare/match_graphs.hpp"
#include "viz/layered/acyclic.hpp"

namespace pw::viz {
namespace {

/// Nodes that were separated from their earlier identity, by version and id.
using Reborn = std::set<std::pair<std::uint32_t, std::uint32_t>>;

class Uniter {
 public:
  Uniter(UnionGraph& out, bool related, const Reborn& reborn)
      : out_(out), related_(related), reborn_(reborn) {}

  void run() {
    for (std::uint32_t v = 0; v < out_.versions.size(); ++v) add(v);
    std::vector<std::uint32_t> order;
    for (std::uint32_t at = head_; at != kNobody; at = next_[at]) order.push_back(at);
    reorder(out_, order);
  }

  /// Reorders the nodes and their positions.
  static void reorder(UnionGraph& graph, const std::vector<std::uint32_t>& order) {
    std::vector<UnionNode> ordered;
    std::vector<std::uint32_t> rank(order.size());
    for (const std::uint32_t at : order) {
      rank[at] = static_cast<std::uint32_t>(ordered.size());
      ordered.push_back(std::move(graph.nodes[at]));
    }
    graph.nodes = std::move(ordered);
    for (auto& index : graph.index)
      for (std::uint32_t& position : index)
        if (position != kNobody) position = rank[position];
  }

 private:
  /// Inserts new nodes after their predecessors in this version.
  void add(std::uint32_t v) {
    const Graph& graph = out_.versions[v]->graph;
    if (!related_ && v > 0) match(v);
    out_.index.emplace_back(graph.node_bound(), kNobody);
    std::uint32_t cursor = kNobody;
    for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
      if (is_inlined(graph, n)) continue;
      std::uint32_t at = find(v, n);
      if (at == kNobody) {
        at = insert_after(cursor);
        out_.nodes[at].id = n;
        out_.nodes[at].first = v;
      } else if (differs(graph, n, out_.nodes[at])) {
        out_.nodes[at].changed.push_back(v);
      }
      out_.nodes[at].id = n;
      out_.nodes[at].last = v;
      out_.index[v][n.index] = at;
      cursor = at;
    }
  }

  void match(std::uint32_t v) {
    GraphMatch found = match_graphs(out_.versions[v - 1]->graph, out_.versions[v]->graph);
    before_ = std::move(found.node_before);
    out_.value_after.push_back(std::move(found.value_after));
  }

  /// Returns its position in the previous version.
  std::uint32_t find(std::uint32_t v, NodeId n) const {
    if (v == 0 || reborn_.contains({v, n.index})) return kNobody;
    const NodeId before = related_ ? n : before_[n.index];
    return before.index < out_.index[v - 1].size() ? out_.index[v - 1][before.index] : kNobody;
  }

  std::uint32_t insert_after(std::uint32_t cursor) {
    const auto at = static_cast<std::uint32_t>(out_.nodes.size());
    out_.nodes.emplace_back();
    std::uint32_t& link = cursor == kNobody ? head_ : next_[cursor];
    const std::uint32_t after = link;
    link = at;
    next_.push_back(after);
    return at;
  }

  /// Ignores redirected operands, which are visible on the edges.
  bool differs(const Graph& graph, NodeId n, const UnionNode& before) const {
    const Graph& old = out_.versions[before.last]->graph;
    const NodeId o = before.id;
    if (graph.op(n) != old.op(o) || graph.attributes(n) != old.attributes(o) ||
        graph.result_count(n) != old.result_count(o))
      return true;
    for (std::size_t r = 0; r < graph.result_count(n); ++r)
      if (graph.type(graph.result(n, r)) != old.type(old.result(o, r))) return true;
    return false;
  }

  UnionGraph& out_;
  bool related_;
  const Reborn& reborn_;
  std::vector<NodeId> before_;  // by node id of this version
  std::vector<std::uint32_t> next_;
  std::uint32_t head_ = kNobody;
};

/// Returns the operands of all versions as pairs of positions, with their first version.
struct UnionEdges {
  std::vector<Arrow> arrows;
  std::vector<std::uint32_t> since;
};

bool same_operands(const Graph& a, NodeId n, const Graph& b, NodeId m) {
  if (a.operand_count(n) != b.operand_count(m)) return false;
  for (std::size_t i = 0; i < a.operand_count(n); ++i)
    if (a.operand(n, i) != b.operand(m, i)) return false;
  return true;
}

UnionEdges edges_of(const UnionGraph& graph, bool related) {
  UnionEdges out;
  for (std::uint32_t v = 0; v < graph.versions.size(); ++v) {
    const Graph& g = graph.versions[v]->graph;
    for (NodeId n = g.first(); n.valid(); n = g.next(n)) {
      const std::uint32_t at = graph.position(v, n);
      if (at == kNobody) continue;
      // Ids are never reused, so that equal operands are equal values.
      if (related && v > graph.nodes[at].first &&
          same_operands(g, n, graph.versions[v - 1]->graph, n))
        continue;
      for (const ValueId operand : g.operands(n)) {
        if (!operand.valid() || g.is_input(operand)) continue;
        const std::uint32_t from = graph.position(v, g.producer(operand));
        if (from == kNobody) continue;
        out.arrows.push_back({from, at});
        out.since.push_back(v);
      }
    }
  }
  return out;
}

/// Splits nodes whose order differs between versions: each version that introduced an edge of their
/// cycle gets separate nodes.
Reborn break_cycles(const UnionGraph& graph, const UnionEdges& edges) {
  const std::vector<std::uint32_t> component = components(graph.nodes.size(), edges.arrows);
  std::vector<std::uint32_t> size(graph.nodes.size(), 0);
  for (const std::uint32_t c : component) ++size[c];
  std::vector<std::set<std::uint32_t>> since(graph.nodes.size());  // by component
  for (std::size_t e = 0; e < edges.arrows.size(); ++e) {
    const auto [from, to] = edges.arrows[e];
    if (component[from] == component[to]) since[component[to]].insert(edges.since[e]);
  }
  Reborn out;
  for (std::uint32_t v = 0; v < graph.versions.size(); ++v)
    for (std::uint32_t id = 0; id < graph.index[v].size(); ++id) {
      const std::uint32_t at = graph.index[v][id];
      if (at == kNobody || size[component[at]] == 1 || v == graph.nodes[at].first) continue;
      if (since[component[at]].contains(v)) out.emplace(v, id);
    }
  return out;
}

}  // namespace

bool is_inlined(const Graph& graph, NodeId n) {
  return graph.operand_count(n) == 0 && graph.result_count(n) == 1 &&
         graph.output_count(graph.result(n)) == 0 && graph.op_of(n).is_literal();
}

UnionGraph unite(std::vector<const Version*> versions, bool related) {
  Reborn reborn;
  for (;;) {
    UnionGraph out;
    out.versions = versions;
    Uniter(out, related, reborn).run();
    const UnionEdges edges = edges_of(out, related);
    if (goes_forward(edges.arrows)) return out;
    if (const auto order = stable_order(out.nodes.size(), edges.arrows)) {
      Uniter::reorder(out, *order);
      return out;
    }
    const Reborn more = break_cycles(out, edges);
    PW_ASSERT(!more.empty(), "a cycle of one version");
    reborn.insert(more.begin(), more.end());
  }
}

}  // namespace pw::viz
