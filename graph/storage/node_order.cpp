#include "graph/storage/node_order.hpp"

#include <algorithm>
#include <cmath>

#include "graph/storage/room.hpp"

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

void NodeOrder::link(NodeId n, NodeId before) {
  ++size_;
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

void NodeOrder::unlink(NodeId n) {
  --size_;
  const Place& place = places_[n];
  (place.previous.valid() ? places_[place.previous].next : head_) = place.next;
  (place.next.valid() ? places_[place.next].previous : tail_) = place.previous;
}

/// Makes labels available around `n`, which is linked and has no free label.
void NodeOrder::relabel_around(NodeId n) {
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
  relabel(head_, size_, 0, kGap);
}

void NodeOrder::relabel(NodeId first, std::size_t count, std::uint64_t base, std::uint64_t step) {
  for (NodeId n = first; count > 0; n = next(n), --count) places_[n].label = base += step;
}

void NodeOrder::expect(std::size_t more) { places_.reserve(with_room(places_.size() + more)); }
void NodeOrder::fit() { fit_with_room(places_); }

}  // namespace pw
