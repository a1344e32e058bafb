// Labels with gaps, insertion, and the local reordering that makes room
// for a rewrite.
//
// Order maintenance (Dietz & Sleator 1987), by the simplified algorithm of Bender et al. (2002):
// nodes form a linked list, and each has a 64-bit tag that rises along it. Two places are compared
// in constant time. An insertion takes a tag between its neighbours' tags. If there is none, the
// tags of the smallest aligned range that is sparse enough are spread evenly, amortised O(log n).
//
// make_room keeps the list topological after a rewrite. Users of the new values that precede their
// operands move after them, with everything between that depends on them (as in dynamic topological
// sorting, Pearce & Kelly 2006).
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/assert.hpp"
#include "graph/graph.hpp"

namespace pw {
namespace {

constexpr std::uint64_t kGap = std::uint64_t{1} << 32;

// An empty gap is filled by spreading the labels of the smallest aligned range of 2^b labels with
// at most 2^(0.75 (b - 24)) nodes (order maintenance; Bender et al. 2002). The allowed density
// falls as ranges grow, so an insertion takes O(log n) amortised time. Gaps are at least 2^24, so
// insertions at one place relabel at most every 24th time.
constexpr unsigned kFirstBits = 25, kLastBits = 63;
bool is_sparse(std::size_t count, unsigned bits) {
  return static_cast<double>(count) <= std::exp2(0.75 * (static_cast<double>(bits) - 24));
}

}  // namespace

void Graph::link_node(NodeId n, NodeId before) {
  nodes_[n].marks &= ~kDead;
  ++live_;
  ++live_of(op(n));
  Place& place = places_[n];
  place.next = before;
  place.previous = before.valid() ? places_[before].previous : tail_;
  (place.previous.valid() ? places_[place.previous].next : head_) = n;
  (before.valid() ? places_[before].previous : tail_) = n;
  const std::uint64_t low = place.previous.valid() ? places_[place.previous].label : 0;
  const std::uint64_t high = before.valid() ? places_[before].label : ~std::uint64_t{0};
  if (low < place.label && place.label < high) return;  // put back where it was
  if (high - low < (before.valid() ? 2 : 2 * kGap)) return relabel_around(n);
  // Nearer to the front, since the next one most often goes between this node and `before`.
  place.label = low + (before.valid() ? std::max<std::uint64_t>(1, (high - low) / 32) : kGap);
}

void Graph::unlink_node(NodeId n) {
  const Place& place = places_[n];
  (place.previous.valid() ? places_[place.previous].next : head_) = place.next;
  (place.next.valid() ? places_[place.next].previous : tail_) = place.previous;
  if (insertion_ == n) insertion_ = place.next;
  if (mark_ == n) mark_ = place.next;
  nodes_[n].marks |= kDead;
  --live_;
  --live_of(op(n));
}

/// Makes labels available around `n`, which is linked and has no free label.
void Graph::relabel_around(NodeId n) {
  ++renumberings_;
  NodeId first = n, last = n;
  std::size_t count = 1;
  const NodeId neighbour = next(n).valid() ? next(n) : previous(n);
  for (unsigned bits = kFirstBits; bits <= kLastBits; ++bits) {
    const std::uint64_t width = std::uint64_t{1} << bits;
    const std::uint64_t base = label(neighbour) & ~(width - 1), top = base + (width - 1);
    for (NodeId p = previous(first); p.valid() && label(p) >= base; p = previous(p), ++count)
      first = p;
    for (NodeId p = next(last); p.valid() && label(p) <= top; p = next(p), ++count) last = p;
    if (is_sparse(count, bits)) return relabel(first, count, base, width / (count + 1));
  }
  relabel(head_, live_, 0, kGap);
}

void Graph::relabel(NodeId first, std::size_t count, std::uint64_t base, std::uint64_t step) {
  for (NodeId n = first; count > 0; n = next(n), --count) places_[n].label = base += step;
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
  insertion_ = latest.valid() ? next(latest) : head_;
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
