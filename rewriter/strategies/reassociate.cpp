#include "rewriter/strategies/reassociate.hpp"

#include <algorithm>

#include "graph/build.hpp"

namespace pw {
namespace {

constexpr std::size_t kLongestChain = 16;

}  // namespace

Reassociation::Reassociation(Graph& graph, EGraph& equal, const std::set<OpId>& ops, Wanted wanted)
    : graph_(graph), equal_(equal), wanted_(std::move(wanted)) {
  for (OpId op : ops)
    if (graph.context().ops[op].traits.associative) ops_.insert(op);
}

Reassociation::Form Reassociation::form_of(NodeId like, ValueId a, ValueId b) const {
  a = equal_.find(a);
  b = equal_.find(b);
  if (graph_.op_of(like).traits.commutative && b < a) std::swap(a, b);
  return {graph_.op(like), graph_.attributes(like), a, b};
}

bool Reassociation::run(std::size_t most) {
  changed_ = full_ = false;
  known_.clear();
  written_.clear();
  std::vector<NodeId> nodes;
  for (NodeId n : graph_.order()) {
    if (!ops_.contains(graph_.op(n)) || graph_.operand_count(n) != 2) continue;
    nodes.push_back(n);
    known_.emplace(form_of(n, graph_.operand(n, 0), graph_.operand(n, 1)), graph_.result(n));
  }
  for (NodeId n : nodes) {
    for (const Reach reach : {Reach::written, Reach::least, Reach::most}) {
      const std::vector<ValueId> chain = chain_of(n, reach);
      if (chain.size() < 3 || chain.size() > kLongestChain) continue;
      std::vector<ValueId> key{equal_.find(graph_.result(n))};
      for (ValueId v : chain) key.push_back(equal_.find(v));
      if (graph_.op_of(n).traits.commutative) std::sort(key.begin() + 1, key.end());
      if (!written_.insert(std::move(key)).second) continue;
      full_ = graph_.node_count() + chain.size() * chain.size() > most;
      if (full_) return changed_;
      regroup(n, chain);
    }
  }
  return changed_;
}

bool Reassociation::continues(NodeId chain, ValueId value) const {
  if (graph_.is_input(value) || !graph_.alive(graph_.producer(value))) return false;
  const NodeId n = graph_.producer(value);
  return graph_.op(n) == graph_.op(chain) && graph_.attributes(n) == graph_.attributes(chain);
}

/// Returns the node that continues the chain at an operand; nothing if it ends there.
std::optional<NodeId> Reassociation::next(NodeId chain, ValueId value, Reach reach) const {
  if (reach == Reach::written)
    return continues(chain, value) ? std::optional(graph_.producer(value)) : std::nullopt;
  std::optional<NodeId> out;
  for (ValueId member : equal_.members(value)) {
    const bool on = continues(chain, member);
    if (!on && reach == Reach::least &&
        (graph_.is_input(member) || graph_.alive(graph_.producer(member))))
      return std::nullopt;
    if (on && !out) out = graph_.producer(member);
  }
  return out;
}

/// Returns the operands of the chain that ends with the node, in order; empty if it is cyclic,
/// since a value may equal a chain of itself.
std::vector<ValueId> Reassociation::chain_of(NodeId node, Reach reach) const {
  std::vector<ValueId> chain, open{graph_.operand(node, 1), graph_.operand(node, 0)};
  for (std::size_t steps = 0; !open.empty(); ++steps) {
    if (steps > 2 * kLongestChain) return {};
    const ValueId v = open.back();
    open.pop_back();
    if (const std::optional<NodeId> on = next(node, v, reach)) {
      open.push_back(graph_.operand(*on, 1));
      open.push_back(graph_.operand(*on, 0));
    } else {
      chain.push_back(v);
    }
  }
  return chain;
}

void Reassociation::regroup(NodeId node, const std::vector<ValueId>& chain) {
  const bool commutes = graph_.op_of(node).traits.commutative;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const std::size_t last = commutes ? chain.size() : std::min(i + 2, chain.size());
    for (std::size_t j = i + 1; j < last; ++j)
      if (wanted_(graph_.op(node), chain[i], chain[j])) write(node, chain, i, j);
  }
}

/// Writes the chain with its operands i and j combined first.
void Reassociation::write(NodeId like, const std::vector<ValueId>& chain, std::size_t i,
                          std::size_t j) {
  const std::optional<ValueId> pair = joined(like, chain[i], chain[j]);
  std::optional<ValueId> before, after;
  for (std::size_t k = 0; k < chain.size(); ++k) {
    if (k == i || k == j) continue;
    std::optional<ValueId>& side = k < i ? before : after;
    side = side ? joined(like, side, chain[k]) : chain[k];
    if (!side) return;
  }
  std::optional<ValueId> all = pair;
  if (all && before) all = joined(like, before, *all);
  if (all && after) all = joined(like, all, *after);
  if (all && graph_.type(*all) == graph_.type(graph_.result(like)))
    changed_ = equal_.merge(graph_.result(like), *all) || changed_;
}

/// Applies the op of `like` to two values, as a known node or a new one. Nothing if its dtype
/// differs.
std::optional<ValueId> Reassociation::joined(NodeId like, std::optional<ValueId> a, ValueId b) {
  if (!a) return std::nullopt;
  const Form form = form_of(like, *a, b);
  if (const auto known = known_.find(form); known != known_.end()) return known->second;
  const TypeId operands[] = {graph_.type(*a), graph_.type(b)};
  const Result<std::vector<TypeId>> types =
      infer_types(graph_.context(), graph_.op(like), operands, graph_.attributes(like), 1);
  const Types& all = graph_.context().types;
  if (!types || types->front() == Types::unknown() ||
      all[types->front()].dtype != all[graph_.type(graph_.result(like))].dtype)
    return std::nullopt;
  NodeSpec spec;
  spec.op = graph_.op(like);
  spec.attributes = graph_.attributes(like);
  spec.operands = {*a, b};
  spec.results = {{types->front(), ""}};
  spec.group = graph_.group(like);
  spec.source = graph_.source(like);
  graph_.insert_before({});
  const ValueId out = graph_.result(graph_.add_node(spec));
  changed_ = true;
  known_.emplace(form, out);
  return out;
}

}  // namespace pw
