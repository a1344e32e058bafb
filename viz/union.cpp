// Exports unite and is_inlined.
#include "viz/union.hpp"

#include "graph/match_graphs.hpp"

namespace pw::viz {
namespace {

class Uniter {
 public:
  Uniter(UnionGraph& out, bool related) : out_(out), related_(related) {}

  void run() {
    for (std::uint32_t v = 0; v < out_.versions.size(); ++v) add(v);
    std::vector<UnionNode> ordered;
    std::vector<std::uint32_t> rank(out_.nodes.size());
    for (std::uint32_t at = head_; at != kNobody; at = next_[at]) {
      rank[at] = static_cast<std::uint32_t>(ordered.size());
      ordered.push_back(std::move(out_.nodes[at]));
    }
    out_.nodes = std::move(ordered);
    for (auto& index : out_.index)
      for (std::uint32_t& position : index)
        if (position != kNobody) position = rank[position];
  }

 private:
  /// New nodes go after the node that stands before them in this version.
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

  /// Where it stands in the version before.
  std::uint32_t find(std::uint32_t v, NodeId n) const {
    if (v == 0) return kNobody;
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

  /// Redirected operands are seen on the edges, so they do not count.
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
  std::vector<NodeId> before_;  // by node id of this version
  std::vector<std::uint32_t> next_;
  std::uint32_t head_ = kNobody;
};

}  // namespace

bool is_inlined(const Graph& graph, NodeId n) {
  return graph.operand_count(n) == 0 && graph.result_count(n) == 1 &&
         graph.output_count(graph.result(n)) == 0 && graph.op_of(n).is_literal();
}

UnionGraph unite(std::vector<const Version*> versions, bool related) {
  UnionGraph out;
  out.versions = std::move(versions);
  Uniter(out, related).run();
  return out;
}

}  // namespace pw::viz
