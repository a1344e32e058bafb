// Exports EGraph.
#include "rewriter/egraph.hpp"

#include <algorithm>

namespace pw {
namespace {

/// What a node computes, with equal operands made the same.
std::vector<std::uint32_t> form_of(const Graph& graph, const EGraph& equal, NodeId n) {
  std::vector<std::uint32_t> operands;
  for (ValueId v : graph.operands(n))
    operands.push_back(v.valid() ? equal.find(v).index : ValueId::kNone);
  if (graph.op_of(n).traits.commutative && operands.size() >= 2 && operands[1] < operands[0])
    std::swap(operands[0], operands[1]);
  std::vector<std::uint32_t> form{graph.op(n).index, graph.attributes(n).index};
  for (std::size_t i = 0; i < graph.result_count(n); ++i)
    form.push_back(graph.type(graph.result(n, i)).index);
  form.insert(form.end(), operands.begin(), operands.end());
  return form;
}

}  // namespace

ValueId EGraph::find(ValueId v) const {
  while (parent_.size() < graph_.value_bound())
    parent_.push_back(static_cast<std::uint32_t>(parent_.size()));
  std::uint32_t root = v.index;
  while (parent_[root] != root) root = parent_[root];
  for (std::uint32_t at = v.index; at != root;) at = std::exchange(parent_[at], root);
  return ValueId(root);
}

bool EGraph::merge(ValueId a, ValueId b) {
  a = find(a);
  b = find(b);
  if (a == b || graph_.type(a) != graph_.type(b)) return false;
  const ValueId low = std::min(a, b), high = std::max(a, b);
  parent_[high.index] = low.index;
  std::vector<ValueId>& into = members_[low];
  if (into.empty()) into.push_back(low);
  const auto from = members_.find(high);
  if (from == members_.end()) {
    into.push_back(high);
  } else {
    into.insert(into.end(), from->second.begin(), from->second.end());
    members_.erase(from);
  }
  std::sort(into.begin(), into.end());
  return true;
}

void EGraph::close() {
  for (bool changed = true; changed;) {
    changed = false;
    forms_.clear();
    std::map<std::vector<std::uint32_t>, NodeId> known;
    for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n)) {
      const auto [at, fresh] = known.emplace(form_of(graph_, *this, n), n);
      if (fresh) forms_.push_back(n);
      for (std::size_t i = 0; !fresh && i < graph_.result_count(n); ++i)
        changed = merge(graph_.result(at->second, i), graph_.result(n, i)) || changed;
    }
  }
}

std::vector<ValueId> EGraph::members(ValueId v) const {
  const auto found = members_.find(find(v));
  return found == members_.end() ? std::vector<ValueId>{v} : found->second;
}

}  // namespace pw
