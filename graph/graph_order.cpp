// Insertion, and the local reordering that makes room for a rewrite.
//
// make_room keeps the list topological after a rewrite. Users of the new values that precede their
// operands move after them, with everything between that depends on them (as in dynamic topological
// sorting, Pearce & Kelly 2006).
#include <algorithm>
#include <unordered_set>

#include "base/assert.hpp"
#include "graph/graph.hpp"

namespace pw {

void Graph::link_node(NodeId n, NodeId before) {
  nodes_[n].marks &= ~kDead;
  ++live_of(op(n));
  order_.link(n, before);
}

void Graph::unlink_node(NodeId n) {
  order_.unlink(n);
  if (insertion_ == n) insertion_ = next(n);
  if (mark_ == n) mark_ = next(n);
  nodes_[n].marks |= kDead;
  --live_of(op(n));
}

void Graph::detach(NodeId n) {
  for (std::size_t i = 0; i < operand_count(n); ++i) unlink_use(use_of(n, i));
  dead_operands_ += operand_count(n);
  unlink_node(n);
  if (names_known_)
    for (std::size_t i = 0; i < result_count(n); ++i) release_name(result(n, i));
}

void Graph::attach(NodeId n, NodeId before) {
  link_node(n, before);
  dead_operands_ -= operand_count(n);
  for (std::size_t i = operand_count(n); i-- > 0;) relink_use(use_of(n, i));
  if (names_known_)
    for (std::size_t i = 0; i < result_count(n); ++i) hold_name(result(n, i));
}

void Graph::move(NodeId n, NodeId before) {
  unlink_node(n);
  link_node(n, before);
}

void Graph::move_before(NodeId n, NodeId position) {
  if (n == position || next(n) == position) return;
  record(Undo::Kind::moved, n.index, next(n).index);
  move(n, position);
}

/// Sets the insertion point between the last input and the first user, as late as possible, which
/// keeps related nodes together.
void Graph::place_insertion(NodeId last_read, NodeId first_user, std::span<const NodeId> ignoring) {
  insertion_ = first_user;
  if (first_user.valid()) return;
  NodeId latest = last_read;
  for (NodeId n : ignoring)
    if (!latest.valid() || label(n) > label(latest)) latest = n;
  insertion_ = latest.valid() ? next(latest) : first();
}

/// Moves the users of `writes` that precede `last_read`, and all nodes between that depend on them,
/// after it. Returns false if a producer of `reads` is among them.
template <class Ignored>
bool Graph::move_early_users(std::span<const ValueId> reads, std::span<const ValueId> writes,
                             NodeId last_read, const Ignored& ignored) {
  std::vector<NodeId> producers;
  for (ValueId v : reads)
    if (v.valid() && !is_input(v) && !ignored(producer(v))) producers.push_back(producer(v));
  std::sort(producers.begin(), producers.end());

  const auto later = [&](NodeId a, NodeId b) { return label(a) > label(b); };
  std::vector<NodeId> frontier;  // a heap, the earliest on top
  std::unordered_set<std::uint32_t> seen;
  const auto visit = [&](ValueId v) {
    for (UseId u = first_use(v); u.valid(); u = next_use(u)) {
      const NodeId n = user(u);
      if (label(n) > label(last_read) || ignored(n) || !seen.insert(n.index).second) continue;
      frontier.push_back(n);
      std::push_heap(frontier.begin(), frontier.end(), later);
    }
  };
  for (ValueId v : writes)
    if (v.valid()) visit(v);
  std::vector<NodeId> moving;
  while (!frontier.empty()) {
    std::pop_heap(frontier.begin(), frontier.end(), later);
    const NodeId n = frontier.back();
    frontier.pop_back();
    if (std::binary_search(producers.begin(), producers.end(), n)) return false;
    moving.push_back(n);
    for (std::size_t i = 0; i < result_count(n); ++i) visit(result(n, i));
  }
  const NodeId position = next(last_read);
  for (NodeId n : moving) move_before(n, position);
  insertion_ = moving.front();
  return true;
}

bool Graph::make_room(std::span<const ValueId> reads, std::span<const ValueId> writes,
                      std::span<const NodeId> ignoring) {
  constexpr std::size_t kFew = 16;
  std::vector<NodeId> sorted;
  if (ignoring.size() > kFew) {
    sorted.assign(ignoring.begin(), ignoring.end());
    std::sort(sorted.begin(), sorted.end());
  }
  const auto ignored = [&](NodeId n) {
    return sorted.empty() ? std::find(ignoring.begin(), ignoring.end(), n) != ignoring.end()
                          : std::binary_search(sorted.begin(), sorted.end(), n);
  };
  NodeId last_read, first_user;
  for (ValueId v : reads) {
    const NodeId p = v.valid() ? producer(v) : NodeId();
    if (p.valid() && (!last_read.valid() || label(p) > label(last_read)) && !ignored(p))
      last_read = p;
  }
  for (ValueId v : writes) {
    if (!v.valid()) continue;
    for (UseId u = first_use(v); u.valid(); u = next_use(u)) {
      const NodeId n = user(u);
      if ((!first_user.valid() || label(n) < label(first_user)) && !ignored(n)) first_user = n;
    }
  }
  if (last_read.valid() && first_user.valid() && label(first_user) <= label(last_read))
    return move_early_users(reads, writes, last_read, ignored);
  place_insertion(last_read, first_user, ignoring);
  return true;
}

}  // namespace pw
