// Congruence closure by hash consing: each node's form (op, attributes, result types,
// representatives of its operands) is looked up in a table, and nodes with equal forms have their
// results merged. close() repeats passes over the whole graph until nothing merges, which is
// simpler than tracking parents and enough for graphs of bounded size.
//
// Invariants: values of one class have equal types; the representative of a class is its oldest
// value; after close() no two forms in forms() are equal. Cost: a pass is linear in the graph up to
// path compression; the passes are bounded by the depth of merges that enable others.
#include "rewriter/egraph/egraph.hpp"

#include <algorithm>
#include <utility>

#include "base/hash.hpp"

namespace pw {

/// Returns the form of a node: what it computes, with equal operands replaced by their
/// representative.
EGraph::Form EGraph::form_of(NodeId n) const {
  Form form{graph_.op(n).index, graph_.attributes(n).index};
  const std::size_t results = graph_.result_count(n), first = 2 + results;
  for (std::size_t i = 0; i < results; ++i) form.push_back(graph_.type(graph_.result(n, i)).index);
  for (std::size_t i = 0; i < graph_.operand_count(n); ++i) {
    const ValueId v = graph_.operand(n, i);
    form.push_back(v.valid() ? find(v).index : ValueId::kNone);
  }
  if (graph_.op_of(n).traits.commutative && graph_.operand_count(n) >= 2 &&
      form[first + 1] < form[first])
    std::swap(form[first], form[first + 1]);
  return form;
}

std::size_t EGraph::Hash::operator()(const Form& form) const {
  std::uint64_t hash = 0;
  for (std::uint32_t word : form) hash = combine(hash, word);
  return hash;
}

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
  const std::vector<ValueId> from = members(high);
  parent_[high.index] = low.index;
  members_.erase(high.index);
  std::vector<ValueId>& into = members_[low.index];
  if (into.empty()) into.push_back(low);
  const auto middle = static_cast<std::ptrdiff_t>(into.size());
  into.insert(into.end(), from.begin(), from.end());
  std::inplace_merge(into.begin(), into.begin() + middle, into.end());
  merged_.push_back(low);
  return true;
}

void EGraph::close() {
  for (bool changed = true; changed;) {
    changed = false;
    forms_.clear();
    known_.clear();
    is_form_.assign(graph_.node_bound(), false);
    for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n)) {
      const auto [at, fresh] = known_.emplace(form_of(n), n);
      if (fresh) {
        forms_.push_back(n);
        is_form_[n.index] = true;
      }
      for (std::size_t i = 0; !fresh && i < graph_.result_count(n); ++i)
        changed = merge(graph_.result(at->second, i), graph_.result(n, i)) || changed;
    }
  }
}

std::optional<NodeId> EGraph::known(NodeId n) const {
  const auto found = known_.find(form_of(n));
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void EGraph::add(NodeId n) { known_.emplace(form_of(n), n); }

std::vector<ValueId> EGraph::members(ValueId v) const {
  const ValueId root = find(v);
  const auto found = members_.find(root.index);
  return found == members_.end() ? std::vector<ValueId>{root} : found->second;
}

std::vector<NodeId> EGraph::producers(ValueId v) const {
  std::vector<NodeId> out;
  for (ValueId member : members(v)) {
    if (graph_.is_input(member)) continue;
    const NodeId n = graph_.producer(member);
    if (!graph_.alive(n) || !is_form(n)) continue;
    if (std::find(out.begin(), out.end(), n) == out.end()) out.push_back(n);
  }
  return out;
}

}  // namespace pw
