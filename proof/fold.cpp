// Compares outputs by value numbering (Cocke and Schwartz 1970): nodes with equal op, attributes,
// operand numbers, and result types share a number. The operands of commutative ops are sorted
// first. While a pair still differs, every node with a body whose op occurs more often on its own
// side is inlined, and the numbering is repeated. Invariant: equal numbers imply equal bits. Each
// level costs O(n log n) in the nodes of the graph, and the number of levels is bounded.
// This stage needs no meaning of any op, so it also proves rules about opaque ops. Only ops whose
// number of occurrences differs are inlined: those that both sides share stay opaque, which keeps
// terms small.
#include "proof/fold.hpp"

#include <algorithm>

#include "graph/build.hpp"

namespace pw::proof {
namespace {

/// Collects the nodes that a value depends on.
void reach(const Graph& graph, ValueId value, std::set<NodeId>& out) {
  std::vector<ValueId> todo = {value};
  while (!todo.empty()) {
    const ValueId next = todo.back();
    todo.pop_back();
    if (!next.valid() || graph.is_input(next)) continue;
    const NodeId node = graph.producer(next);
    if (!out.insert(node).second) continue;
    for (std::size_t i = 0; i < graph.operand_count(node); ++i)
      todo.push_back(graph.operand(node, i));
  }
}

std::map<OpId, std::size_t> ops_of(const Graph& graph, const std::set<NodeId>& nodes) {
  std::map<OpId, std::size_t> out;
  for (NodeId node : nodes) ++out[graph.op(node)];
  return out;
}

}  // namespace

Numbering::Numbering(const Graph& graph) : numbers_(graph.value_bound(), 0) {
  // 0 is the number of an absent operand.
  std::uint32_t next = 1;
  for (ValueId input : graph.inputs()) numbers_[input.index] = next++;
  using Key = std::tuple<OpId, AttributesId, std::vector<std::uint32_t>, std::vector<TypeId>>;
  std::map<Key, std::uint32_t> known;
  for (NodeId node = graph.first(); node.valid(); node = graph.next(node)) {
    std::vector<std::uint32_t> operands;
    for (std::size_t i = 0; i < graph.operand_count(node); ++i)
      operands.push_back((*this)[graph.operand(node, i)]);
    // Commutation preserves bits, except for the sign when maxima or minima tie between zeros; see
    // matches_either_zero in prove.cpp.
    if (graph.op_of(node).traits.commutative && operands.size() >= 2 && operands[1] < operands[0])
      std::swap(operands[0], operands[1]);
    std::vector<TypeId> types;
    for (std::size_t r = 0; r < graph.result_count(node); ++r)
      types.push_back(graph.type(graph.result(node, r)));
    const auto [found, fresh] =
        known.emplace(Key(graph.op(node), graph.attributes(node), operands, types), next);
    if (fresh) next += 1 + static_cast<std::uint32_t>(types.size());
    node_numbers_.emplace(node, found->second);
    for (std::size_t r = 0; r < types.size(); ++r)
      numbers_[graph.result(node, r).index] = found->second + 1 + static_cast<std::uint32_t>(r);
  }
}

std::vector<bool> fold_pairs(Graph& graph, std::size_t pairs, std::string* problem) {
  // The number of levels of nested bodies.
  constexpr int kDeepest = 24;
  std::vector<bool> same(pairs, false);
  for (int depth = 0; depth < kDeepest; ++depth) {
    const Numbering numbers(graph);
    std::set<NodeId> left, right;
    for (std::size_t i = 0; i < pairs; ++i) {
      const ValueId a = graph.outputs()[i], b = graph.outputs()[pairs + i];
      same[i] = numbers[a] == numbers[b];
      if (same[i]) continue;
      reach(graph, a, left);
      reach(graph, b, right);
    }
    if (std::find(same.begin(), same.end(), false) == same.end()) return same;
    const auto on_left = ops_of(graph, left), on_right = ops_of(graph, right);
    std::set<NodeId> unfold;
    for (const auto* side : {&left, &right}) {
      const auto& others = side == &left ? on_right : on_left;
      const auto& own = side == &left ? on_left : on_right;
      for (NodeId node : *side) {
        const auto found = others.find(graph.op(node));
        // Inlining both occurrences of a shared op would not help: they match or differ by their
        // operands.
        const bool only_here = found == others.end() || found->second < own.at(graph.op(node));
        if (only_here && graph.op_of(node).has_body()) unfold.insert(node);
      }
    }
    if (unfold.empty()) return same;
    for (NodeId node : unfold) {
      auto made = inline_node(graph, node);
      if (!made) {
        if (problem != nullptr) *problem = made.error().front().message;
        return same;
      }
    }
  }
  return same;
}

}  // namespace pw::proof
