// Exports reduce_graph: delta debugging by dropping outputs and cutting off nodes at both ends, as
// long as some order still makes a difference.
#include <algorithm>

#include "rewriter/analysis/fuzz_order.hpp"

namespace pw {
namespace {

/// A reduction of a graph: the outputs that are kept, and the nodes whose results become inputs.
struct Cut {
  std::vector<ValueId> outputs;
  std::vector<char> becomes;  // by node
};

/// What is left, without nodes that no output needs.
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

/// The outputs without one of them.
std::vector<ValueId> without(std::vector<ValueId> outputs, std::size_t place) {
  outputs.erase(outputs.begin() + static_cast<std::ptrdiff_t>(place));
  return outputs;
}

/// What the node reads, in place of its results.
std::vector<ValueId> operands_for(const Graph& graph, NodeId node) {
  std::vector<ValueId> out;
  const auto add = [&](ValueId v) {
    if (v.valid() && std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
  };
  for (ValueId v : graph.outputs())
    if (graph.is_input(v) || graph.producer(v) != node) add(v);
  for (ValueId v : graph.operands(node))
    if (v.valid() && !graph.is_input(v)) add(v);
  return out;
}

}  // namespace

Graph reduce_graph(const Graph& graph, const RuleSet& rules, const Strategy& strategy,
                   const Env& params, const FuzzOptions& options) {
  Graph best = graph.compact();
  std::size_t tries = 0;
  const auto keep = [&](const Cut& cut) {
    if (++tries > options.tries) return false;
    Graph smaller = cut_graph(best, cut);
    const auto size = [](const Graph& g) { return std::pair(g.node_count(), g.outputs().size()); };
    if (smaller.outputs().empty() || size(smaller) >= size(best)) return false;
    const auto report = fuzz_order(smaller, rules, strategy, params, options);
    if (!report || report->different.empty()) return false;
    best = smaller.compact();
    return true;
  };
  const auto nothing = [&] { return std::vector<char>(best.node_bound()); };
  for (bool smaller = true; smaller && tries <= options.tries;) {
    smaller = false;
    for (std::size_t i = 0; i < best.outputs().size(); ++i)
      smaller = keep({without(best.outputs(), i), nothing()}) || smaller;
    for (std::size_t i = best.node_bound(); i-- > 0;) {
      if (i >= best.node_bound()) continue;  // it became much smaller
      smaller = keep({operands_for(best, NodeId(i)), nothing()}) || smaller;
      if (i >= best.node_bound()) continue;
      std::vector<char> becomes = nothing();
      becomes[i] = 1;
      smaller = keep({best.outputs(), std::move(becomes)}) || smaller;
    }
  }
  return best;
}

}  // namespace pw
