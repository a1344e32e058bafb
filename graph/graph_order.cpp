// Exports Graph's order list: gap labels, insertion, and the local reordering that makes room for a
// rewrite.
#include <algorithm>
#include <queue>
#include <set>

#include "base/assert.hpp"
#include "graph/graph.hpp"

namespace pw {
namespace {
constexpr std::uint64_t kGap = std::uint64_t{1} << 32;
}

void Graph::link_node(NodeId n, NodeId before) {
  Node& node = nodes_[n];
  node.alive = true;
  ++live_;
  node.next = before;
  node.previous = before.valid() ? nodes_[before].previous : tail_;
  (node.previous.valid() ? nodes_[node.previous].next : head_) = n;
  (before.valid() ? nodes_[before].previous : tail_) = n;
  std::uint64_t low = node.previous.valid() ? nodes_[node.previous].label : 0;
  if (!before.valid()) {
    node.label = low + kGap;
    return;
  }
  std::uint64_t high = nodes_[before].label;
  if (high - low < 2) {
    relabel();
    return;
  }
  node.label = low + (high - low) / 2;
}

void Graph::unlink_node(NodeId n) {
  Node& node = nodes_[n];
  (node.previous.valid() ? nodes_[node.previous].next : head_) = node.next;
  (node.next.valid() ? nodes_[node.next].previous : tail_) = node.previous;
  if (insertion_ == n) insertion_ = node.next;
  node.alive = false;
  --live_;
}

void Graph::relabel() {
  ++renumberings_;
  std::uint64_t label = kGap;
  for (NodeId n = head_; n.valid(); n = nodes_[n].next, label += kGap) nodes_[n].label = label;
}

void Graph::detach(NodeId n) {
  for (std::size_t i = 0; i < operand_count(n); ++i) unlink_use(UseId(nodes_[n].first_operand + i));
  unlink_node(n);
  for (std::size_t i = 0; i < result_count(n); ++i) names_.erase(values_[result(n, i)].name.index);
}

void Graph::attach(NodeId n, NodeId before) {
  link_node(n, before);
  for (std::size_t i = 0; i < operand_count(n); ++i) {
    UseId u(nodes_[n].first_operand + i);
    link_use(u, uses_[u].value);
  }
  for (std::size_t i = 0; i < result_count(n); ++i) names_.insert(values_[result(n, i)].name.index);
}

void Graph::move_before(NodeId n, NodeId position) {
  if (n == position || nodes_[n].next == position) return;
  record(Undo::Kind::moved, n.index, 0, nodes_[n].next.index);
  unlink_node(n);
  link_node(n, position);
}

bool Graph::make_room(std::span<const ValueId> reads, std::span<const ValueId> writes,
                      std::span<const NodeId> ignoring) {
  std::set<std::uint32_t> ignored;
  for (NodeId n : ignoring) ignored.insert(n.index);
  NodeId last_read;
  std::set<std::uint32_t> producers;
  for (ValueId v : reads) {
    NodeId p = v.valid() ? producer(v) : NodeId();
    if (!p.valid() || ignored.contains(p.index)) continue;
    producers.insert(p.index);
    if (!last_read.valid() || label(p) > label(last_read)) last_read = p;
  }
  // Users of the outputs that stand before the last input must move behind it, and with them all
  // that depends on them.
  using Entry = std::pair<std::uint64_t, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> frontier;
  std::set<std::uint32_t> early;
  NodeId first_user;
  auto visit = [&](ValueId v) {
    for (UseId u = first_use(v); u.valid(); u = next_use(u)) {
      NodeId n = user(u);
      if (ignored.contains(n.index)) continue;
      if (!first_user.valid() || label(n) < label(first_user)) first_user = n;
      if (last_read.valid() && label(n) <= label(last_read) && early.insert(n.index).second)
        frontier.push({label(n), n.index});
    }
  };
  for (ValueId v : writes)
    if (v.valid()) visit(v);
  std::vector<NodeId> moving;
  while (!frontier.empty()) {
    NodeId n{frontier.top().second};
    frontier.pop();
    if (producers.contains(n.index)) return false;
    moving.push_back(n);
    for (std::size_t i = 0; i < result_count(n); ++i) visit(result(n, i));
  }
  if (moving.empty()) {
    // Anywhere between the last input and the first user; as late as possible keeps related nodes
    // together.
    insertion_ = first_user.valid() ? first_user : last_read.valid() ? next(last_read) : head_;
    if (!first_user.valid() && !ignoring.empty()) {
      NodeId latest = last_read;
      for (NodeId n : ignoring)
        if (!latest.valid() || label(n) > label(latest)) latest = n;
      insertion_ = next(latest);
    }
    return true;
  }
  NodeId position = next(last_read);
  for (NodeId n : moving) move_before(n, position);
  insertion_ = moving.front();
  return true;
}

}  // namespace pw
