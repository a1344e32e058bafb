#include "rewriter/engine/pass/match_queue.hpp"

#include "rewriter/engine/legality.hpp"
#include "rewriter/engine/pass/candidate_legality.hpp"

namespace pw {
namespace {

/// Sorts by insertion while elements move little, which is fast for a nearly sorted list.
template <class T, class Before>
void sort_nearly_sorted(std::vector<T>& items, const Before& before) {
  std::size_t moves = 0;
  const std::size_t most = items.size();
  for (std::size_t i = 1; i < items.size(); ++i) {
    if (moves > most) return std::sort(items.begin(), items.end(), before);
    const T item = items[i];
    std::size_t at = i;
    for (; at > 0 && before(item, items[at - 1]); --at, ++moves) items[at] = items[at - 1];
    items[at] = item;
  }
}

}  // namespace

bool comes_first(const Graph& graph, const Match& a, const Match& b) {
  const std::vector<NodeId> x = all_nodes(a), y = all_nodes(b);
  for (std::size_t i = 0; i < x.size() && i < y.size(); ++i)
    if (x[i] != y[i]) return graph.label(x[i]) < graph.label(y[i]);
  return x.size() < y.size();
}

void MatchQueue::clear() {
  version_ = graph_.renumberings();
  heap_.clear();
  seeds_.clear();
  parked_.clear();
  pool_.size = 0;
  latest_.clear();
  listed_.clear();
  queued_.clear();
}

/// Reserves a generous bound; unused memory costs nothing.
void MatchQueue::reserve_seeds() {
  pool_.reserve(2 * graph_.node_count());
  latest_.reserve(2 * graph_.node_bound());
  latest_.resize(graph_.node_bound(), kNoEntry);
  heap_.reserve(graph_.node_count() / 4);
}

/// The list is nearly sorted and consumed in order, so a sorted list replaces a heap.
void MatchQueue::end_seeding() {
  seeding_ = false;
  seeds_ = std::move(heap_);
  heap_.clear();
  std::reverse(seeds_.begin(), seeds_.end());  // the first comes last
  sort_nearly_sorted(seeds_, Later{this});
}

/// Returns a mask of the nodes whose operands the match exchanges, for the first 32 pattern nodes.
std::uint32_t MatchQueue::swaps_of(const Candidate& c) {
  std::uint32_t swaps = 0;
  for (std::size_t i = 0; i < c.nodes.size(); ++i)
    if (c.swaps[i] != 0 && i < 32) swaps |= 1u << i;
  return swaps;
}

/// Stores a match as an entry that waits at its anchor.
[[gnu::flatten]] MatchQueue::Entry MatchQueue::store(std::uint32_t index, NodeId anchor,
                                                     const Candidate& c, std::uint32_t verdict) {
  if (latest_.size() <= anchor.index) latest_.resize(graph_.node_bound() + 1024, kNoEntry);
  Entry entry;
  entry.position = position_of(graph_, pass_.rules[index], c);
  entry.rule = index;
  entry.at = static_cast<std::uint32_t>(pool_.size);
  std::uint32_t* const out = pool_.add(kNodes + c.nodes.size());
  out[kRule] = index;
  out[kEarlier] = latest_[anchor.index];
  out[kAnchor] = anchor.index;
  out[kVerdict] = verdict;
  out[kSwaps] = swaps_of(c);
  for (std::size_t i = 0; i < c.nodes.size(); ++i) out[kNodes + i] = c.nodes[i].index;
  latest_[anchor.index] = entry.at;
  return entry;
}

/// A nearby rewrite causes an anchor to be matched again, and so to report pending matches.
[[gnu::flatten]] bool MatchQueue::is_pending(std::uint32_t index, NodeId anchor, const Candidate& c,
                                             std::uint32_t verdict) const {
  if (latest_.size() <= anchor.index || latest_[anchor.index] == kNoEntry) return false;
  const std::uint32_t swaps = swaps_of(c);
  const auto equal = [&](const std::uint32_t* entry) {
    if (entry[kRule] != index || entry[kVerdict] != verdict || entry[kSwaps] != swaps) return false;
    for (std::size_t i = 0; i < c.nodes.size(); ++i)
      if (entry[kNodes + i] != c.nodes[i].index) return false;
    return true;
  };
  for (std::uint32_t at = latest_[anchor.index]; at != kNoEntry; at = pool_[at + kEarlier])
    if (equal(pool_.data() + at)) return true;
  return false;
}

[[gnu::flatten]] bool MatchQueue::holds_registers(std::uint32_t index, NodeId anchor) const {
  if (latest_.size() <= anchor.index) return false;
  const Registers& registers = *pass_.registers;
  const PassRule::Reading& reading = pass_.rules[index].reading;
  const auto equal = [&](const std::uint32_t* entry) {
    if (entry[kRule] != index) return false;
    std::uint32_t swaps = 0;
    for (std::size_t i = 0; i < reading.nodes.size(); ++i) {
      if (entry[kNodes + i] != registers.nodes[reading.nodes[i]].index) return false;
      if (i < 32 && registers.swaps[reading.swaps[i]] != 0) swaps |= 1u << i;
    }
    return entry[kSwaps] == swaps;
  };
  for (std::uint32_t at = latest_[anchor.index]; at != kNoEntry; at = pool_[at + kEarlier])
    if (equal(pool_.data() + at)) return true;
  return false;
}

void MatchQueue::push_listed(std::uint32_t index, std::uint64_t position, Listed listed) {
  const Entry entry{position, index, static_cast<std::uint32_t>(listed_.size())};
  listed_.push_back(std::move(listed));
  ++queued_[key_of(entry)];
  add(entry);
}

void MatchQueue::put_back(const Entry& entry, std::uint64_t position) {
  add({position, entry.rule, entry.at});
  if (pass_.rules[entry.rule].lists)
    ++queued_[key_of(entry)];
  else
    remember(entry);
}

/// A parked plain entry does not wait at its anchor: its match may be found again.
void MatchQueue::park(const Entry& entry) {
  parked_.push_back(entry);
  if (pass_.rules[entry.rule].lists) ++queued_[key_of(entry)];
}

void MatchQueue::park(std::uint32_t rule, NodeId anchor, const Candidate& c,
                      std::uint32_t verdict) {
  parked_.push_back(store(rule, anchor, c, verdict));
  forget(parked_.back());
}

void MatchQueue::release_parked() {
  heap_.insert(heap_.end(), parked_.begin(), parked_.end());
  parked_.clear();
  rekey();  // their positions may be stale
}

/// Returns the key of a match of a rule with lists.
std::vector<std::uint32_t> MatchQueue::key_of(const Entry& entry) const {
  return PassState::key(entry.rule, all_nodes(listed_[entry.at].match));
}

/// Removes an entry from those that wait at its anchor.
void MatchQueue::forget(const Entry& entry) {
  std::uint32_t* at = &latest_[pool_[entry.at + kAnchor]];
  while (*at != kNoEntry && *at != entry.at) at = &pool_[*at + kEarlier];
  if (*at == entry.at) *at = pool_[entry.at + kEarlier];
}

/// Adds an entry to those that wait at its anchor.
void MatchQueue::remember(const Entry& entry) {
  std::uint32_t& latest = latest_[pool_[entry.at + kAnchor]];
  pool_[entry.at + kEarlier] = latest;
  latest = entry.at;
}

/// Returns true if `a` comes after `b` at the same position: by rank, then by the labels of the
/// nodes in pattern order, then as written.
bool MatchQueue::breaks_tie(const Entry& a, const Entry& b) const {
  if (a.rule != b.rule) return a.rule > b.rule;
  if (pass_.rules[a.rule].lists) {
    const Match &x = listed_[a.at].match, &y = listed_[b.at].match;
    return comes_first(graph_, y, x) || (!comes_first(graph_, x, y) && a.at > b.at);
  }
  const std::size_t count = pass_.rules[a.rule].ast().nodes.size();
  for (std::size_t i = 0; i < count; ++i) {
    const NodeId x{std::size_t{pool_[a.at + kNodes + i]}}, y{std::size_t{pool_[b.at + kNodes + i]}};
    if (x == y || !x.valid() || !y.valid()) continue;
    return graph_.label(x) > graph_.label(y);
  }
  return pool_[a.at + kSwaps] > pool_[b.at + kSwaps];
}

void MatchQueue::rekey() {
  version_ = graph_.renumberings();
  heap_.insert(heap_.end(), seeds_.begin(), seeds_.end());
  seeds_.clear();
  std::vector<Entry> kept;
  for (Entry& entry : heap_) {
    PassRule& rule = pass_.rules[entry.rule];
    if (rule.lists) {
      kept.push_back(entry);  // rejected when it is dequeued
      continue;
    }
    forget(entry);
    if (!bind(entry)) continue;
    remember(entry);
    entry.position = position_of(graph_, rule, rule.taken);
    kept.push_back(entry);
  }
  heap_ = std::move(kept);
  std::make_heap(heap_.begin(), heap_.end(), Later{this});
}

/// Returns the position of the first entry.
std::uint64_t MatchQueue::next_position() const {
  std::uint64_t out = ~std::uint64_t{0};
  if (!heap_.empty()) out = heap_.front().position;
  if (!seeds_.empty()) out = std::min(out, seeds_.back().position);
  return out;
}

/// The earlier of the next seed and the top of the heap.
MatchQueue::Entry MatchQueue::next() {
  const bool seed = heap_.empty() || (!seeds_.empty() && Later{this}(heap_.front(), seeds_.back()));
  if (!seed) std::pop_heap(heap_.begin(), heap_.end(), Later{this});
  std::vector<Entry>& from = seed ? seeds_ : heap_;
  const Entry out = from.back();
  from.pop_back();
  if (!pass_.rules[out.rule].lists)
    forget(out);
  else if (const auto queued = queued_.find(key_of(out));
           queued != queued_.end() && --queued->second == 0)
    queued_.erase(queued);
  return out;
}

bool MatchQueue::bind(const Entry& entry) {
  const std::uint32_t* const known = pool_.data() + entry.at;
  return rebind(graph_, pass_.rules[entry.rule], known + kNodes, known[kSwaps]);
}

NodeId MatchQueue::anchor_of(const Entry& entry) const {
  if (pass_.rules[entry.rule].lists) return listed_[entry.at].anchor;
  return NodeId{std::size_t{pool_[entry.at + kAnchor]}};
}

}  // namespace pw
