#include "rewriter/analysis/orders/reduce.hpp"

#include <algorithm>

namespace pw {
namespace {

/// A reduction of a graph: the remaining outputs, and the nodes whose results become inputs.
struct Cut {
  std::vector<ValueId> outputs;
  std::vector<char> becomes;  // by node
};

/// Returns the reduced graph, without nodes that no output needs.
Graph cut_graph(const Graph& graph, const Cut& cut) {
  Graph out(graph.context_ptr(), graph.name);
  out.facts = graph.facts;
  std::vector<char> needed(graph.value_bound());
  for (ValueId v : cut.outputs) needed[v.index] = 1;
  const auto wanted = [&](NodeId n) {
    bool any = graph.op_of(n).traits.effect;
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      any = any || needed[graph.result(n, i).index] != 0;
    return any;
  };
  for (NodeId n = graph.last(); n.valid(); n = graph.previous(n)) {
    if (cut.becomes[n.index] != 0 || !wanted(n)) continue;
    for (ValueId v : graph.operands(n))
      if (v.valid()) needed[v.index] = 1;
  }
  std::vector<ValueId> value_of(graph.value_bound());
  const auto add_input = [&](ValueId v, InputKind kind) {
    if (needed[v.index] != 0)
      value_of[v.index] = out.add_input(graph.value_name(v), graph.type(v), kind);
  };
  for (ValueId v : graph.inputs()) add_input(v, graph.input_kind(v));
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
    if (!wanted(n)) continue;
    if (cut.becomes[n.index] != 0) {
      for (std::size_t i = 0; i < graph.result_count(n); ++i)
        add_input(graph.result(n, i), InputKind::input);
      continue;
    }
    NodeSpec spec;
    spec.op = graph.op(n);
    spec.attributes = graph.attributes(n);
    for (ValueId v : graph.operands(n))
      spec.operands.push_back(v.valid() ? value_of[v.index] : ValueId());
    for (std::size_t i = 0; i < graph.result_count(n); ++i) {
      const ValueId v = graph.result(n, i);
      spec.results.push_back({graph.type(v), std::string(graph.value_name(v))});
    }
    const NodeId made = out.add_node(spec);
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      value_of[graph.result(n, i).index] = out.result(made, i);
  }
  for (ValueId v : cut.outputs) out.add_output(value_of[v.index]);
  return out;
}

/// Search by blocks of the order of nodes, from halves down to single ones.
class Reducer {
 public:
  Reducer(const Graph& graph, const StillShows& shows, std::size_t tries)
      : best_(graph.compact()), shows_(shows), tries_(tries) {}

  Graph run() {
    for (std::size_t block = std::max<std::size_t>(best_.node_count() / 2, 1); tries_ > 0;) {
      const bool smaller = drop_outputs(block) | drop_nodes(block);
      if (block == 1 && !smaller) break;
      if (!smaller || block > best_.node_count()) block = std::max<std::size_t>(block / 2, 1);
    }
    return std::move(best_);
  }

 private:
  bool keep(const Cut& cut) {
    if (tries_ == 0 || cut.outputs.empty()) return false;
    Graph smaller = cut_graph(best_, cut);
    const auto size = [](const Graph& g) { return std::pair(g.node_count(), g.outputs().size()); };
    if (size(smaller) >= size(best_)) return false;
    --tries_;
    if (!shows_(smaller)) return false;
    best_ = smaller.compact();
    return true;
  }
  [[nodiscard]] std::vector<char> nothing() const { return std::vector<char>(best_.node_bound()); }

  bool drop_outputs(std::size_t block) {
    bool smaller = false;
    for (std::size_t i = 0; i < best_.outputs().size();) {
      std::vector<ValueId> outputs = best_.outputs();
      const std::size_t end = std::min(i + block, outputs.size());
      outputs.erase(outputs.begin() + static_cast<std::ptrdiff_t>(i),
                    outputs.begin() + static_cast<std::ptrdiff_t>(end));
      if (keep({std::move(outputs), nothing()}))
        smaller = true;
      else
        i += block;
    }
    return smaller;
  }

  /// Drops nodes from the end on, where a cut removes most: first the readers of a block, then the
  /// block.
  bool drop_nodes(std::size_t block) {
    bool smaller = false;
    for (std::size_t end = best_.node_bound(); end > 0;) {
      const std::size_t begin = end - std::min(block, end);
      smaller = keep({outputs_before(begin, end), nothing()}) || smaller;
      end = std::min(end, best_.node_bound());
      if (begin < end) {
        std::vector<char> becomes = nothing();
        std::fill(becomes.begin() + static_cast<std::ptrdiff_t>(begin),
                  becomes.begin() + static_cast<std::ptrdiff_t>(end), 1);
        smaller = keep({best_.outputs(), std::move(becomes)}) || smaller;
      }
      end = std::min(begin, best_.node_bound());
    }
    return smaller;
  }

  /// Returns the outputs that no node of the block makes, and the block's operands in place of the
  /// others.
  [[nodiscard]] std::vector<ValueId> outputs_before(std::size_t begin, std::size_t end) const {
    std::vector<ValueId> out;
    const auto inside = [&](ValueId v) {
      return !best_.is_input(v) && begin <= best_.producer(v).index &&
             best_.producer(v).index < end;
    };
    const auto add = [&](ValueId v) {
      if (v.valid() && !inside(v) && std::find(out.begin(), out.end(), v) == out.end())
        out.push_back(v);
    };
    for (ValueId v : best_.outputs()) add(v);
    for (std::size_t n = begin; n < std::min(end, best_.node_bound()); ++n)
      for (ValueId v : best_.operands(NodeId(n)))
        if (v.valid() && !best_.is_input(v)) add(v);
    return out;
  }

  Graph best_;
  const StillShows& shows_;
  std::size_t tries_;
};

}  // namespace

Graph graph_around(const Graph& graph, std::span<const NodeId> nodes) {
  Cut cut{{}, std::vector<char>(graph.node_bound(), 1)};
  for (NodeId n : nodes) {
    cut.becomes[n.index] = 0;
    for (ValueId v : graph.operands(n))  // a literal as an input would be any number
      if (v.valid() && !graph.is_input(v) && graph.op_of(graph.producer(v)).is_literal())
        cut.becomes[graph.producer(v).index] = 0;
  }
  for (NodeId n : nodes)
    for (std::size_t i = 0; i < graph.result_count(n); ++i) {
      const ValueId v = graph.result(n, i);
      const std::vector<NodeId> users = graph.users(v);
      if (graph.is_output(v) || std::any_of(users.begin(), users.end(), [&](NodeId user) {
            return cut.becomes[user.index] != 0;
          }))
        cut.outputs.push_back(v);
    }
  return cut_graph(graph, cut);
}

Graph reduce_graph(const Graph& graph, const StillShows& shows, std::size_t tries) {
  return Reducer(graph, shows, tries).run();
}

}  // namespace pw
