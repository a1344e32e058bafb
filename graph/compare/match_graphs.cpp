// Items (inputs, then nodes) of both graphs are paired from the most to the
// least certain evidence, as tree differencing does (GumTree, Falleri et al. 2014), with hashes in
// place of subtrees:
//  * names of inputs;
//  * unique equal keys, where a key is a hash of an item's computation (`up`, from what is matched
//    or the inputs), of its uses (`down`), of both (`whole`), or of its neighbourhood within 4, 2
//    or 1 edges (`around`, colour refinement as by Weisfeiler and Leman);
//  * equal names where more neighbours agree than not;
//  * neighbours of pairs, where label and slot distinguish them (`spread`);
//  * equal keys in order, if both sides have the same number of them.
//
// The first kind that gives a pair ends a round, since each pair makes the hashes around it more
// telling. The strict stage compares op, attributes and types; a second one the op alone; at last a
// node is paired with one of another op that has the same operands and place.
//
// Invariant: a pair is never undone. Rounds are bounded, and a stage ends where eight rounds pair
// less than a 256th of what is open, so that the whole is O(n log n) for a fixed number of rounds.
#include "graph/compare/match_graphs.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "graph/text/flat_graph.hpp"

namespace pw {
namespace {

constexpr int kRounds = 100;      // of one stage
constexpr int kMostRounds = 300;  // of all
// A stage ends when this many rounds match less than this part of the open items.
constexpr int kSlowRounds = 8;
constexpr std::size_t kSlowPart = 256;
constexpr std::array<int, 3> kRadii{4, 2, 1};

using Items = std::vector<std::uint32_t>;
using Keys = std::vector<std::uint64_t>;  // by item; those of matched items mean nothing

/// One of the two graphs, with what is known of it so far.
struct Side {
  explicit Side(const Graph& graph)
      : flat(graph), partner(flat.size(), kNoItem), namesake(flat.size(), kNoItem) {
    for (std::uint32_t item = 0; item < flat.size(); ++item) open.push_back(item);
  }
  [[nodiscard]] bool matched(std::uint32_t item) const { return partner[item] != kNoItem; }

  FlatGraph flat;
  Items partner;   ///< item of the other graph
  Items namesake;  ///< the same, by name alone
  Items open;      ///< not matched at the beginning of the round, in order
  Keys label, up, down, around;
  std::vector<bool> anchored;  ///< what it computes begins at what is matched, nowhere else
};

// Keys of items.
std::uint64_t up(const Side& side, std::uint32_t item) { return side.up[item]; }
std::uint64_t down(const Side& side, std::uint32_t item) { return side.down[item]; }
std::uint64_t around(const Side& side, std::uint32_t item) { return side.around[item]; }
std::uint64_t whole(const Side& side, std::uint32_t item) {
  return combine(side.up[item], side.down[item]);
}

// Filters for the items to which a key applies.
bool any(const Side& /*side*/, std::uint32_t /*item*/) { return true; }
bool has_operands(const Side& side, std::uint32_t item) {
  return !side.flat.operands(item).empty();
}
bool anchored(const Side& side, std::uint32_t item) {
  return has_operands(side, item) && side.anchored[item];
}
bool has_uses(const Side& side, std::uint32_t item) { return !side.flat.uses(item).empty(); }
/// All its operands are matched.
bool ready(const Side& side, std::uint32_t item) {
  const auto operands = side.flat.operands(item);
  return std::all_of(operands.begin(), operands.end(), [&](const ItemResult& o) {
    return o.item == kNoItem || side.matched(o.item);
  });
}

class Matcher {
 public:
  Matcher(const Graph& before, const Graph& after) : sides_{Side(before), Side(after)} {}

  GraphMatch run() {
    find_namesakes();
    label_all(true);
    pair_inputs();
    stage(true);
    label_all(false);
    stage(false);
    for (int round = 0; round < kRounds && some([&] { pair_replaced(); }); ++round) stage(false);
    return answer();
  }

 private:
  // ---- pairs
  void pair(std::uint32_t a, std::uint32_t b) {
    sides_[0].partner[a] = b;
    sides_[1].partner[b] = a;
    ++pairs_;
  }
  [[nodiscard]] bool may_pair(std::uint32_t a, std::uint32_t b) const {
    return !sides_[0].matched(a) && !sides_[1].matched(b) &&
           sides_[0].label[a] == sides_[1].label[b];
  }
  /// Label of a pair, equal on both sides.
  [[nodiscard]] std::uint64_t pair_hash(int side, std::uint32_t item) const {
    return mix(0x70616972u ^ (side == 0 ? item : sides_[1].partner[item]));
  }
  [[nodiscard]] std::uint64_t known(int side, const Keys& keys, std::uint32_t item) const {
    return sides_[side].matched(item) ? pair_hash(side, item) : keys[item];
  }

  // ---- names
  void find_namesakes() {
    std::array<std::vector<std::pair<std::string_view, std::uint32_t>>, 2> names;
    for (int s = 0; s < 2; ++s) {
      for (const std::uint32_t item : sides_[s].open)
        names[s].emplace_back(sides_[s].flat.name(item), item);
      std::sort(names[s].begin(), names[s].end());
      steps_ += names[s].size();
    }
    // A node may have the name of another's result: a name that is not unique does not count.
    const auto unique = [](const auto& list, std::size_t i) {
      return (i == 0 || list[i - 1].first != list[i].first) &&
             (i + 1 == list.size() || list[i + 1].first != list[i].first);
    };
    for (std::size_t i = 0, j = 0; i < names[0].size() && j < names[1].size();) {
      const auto& [a, item] = names[0][i];
      const auto& [b, other] = names[1][j];
      if (a == b && unique(names[0], i) && unique(names[1], j) &&
          sides_[0].flat.is_input(item) == sides_[1].flat.is_input(other)) {
        sides_[0].namesake[item] = other;
        sides_[1].namesake[other] = item;
      }
      if (a <= b) ++i;
      if (b <= a) ++j;
    }
  }

  [[nodiscard]] bool same_input_names() const {
    const Side &a = sides_[0], &b = sides_[1];
    if (a.flat.inputs() != b.flat.inputs()) return false;
    for (std::uint32_t i = 0; i < a.flat.inputs(); ++i)
      if (a.namesake[i] == kNoItem) return false;
    return true;
  }
  /// Pairs inputs of equal names: all of them if both graphs have the same names, else those whose
  /// users agree.
  void pair_inputs() {
    const bool all = same_input_names();
    for (std::uint32_t i = 0; i < sides_[0].flat.inputs(); ++i) {
      const std::uint32_t other = sides_[0].namesake[i];
      if (all || (other != kNoItem && may_pair(i, other) && neighbours_agree(i, other)))
        pair(i, other);
    }
  }

  // ---- stages
  /// Labels all items. `strict`: by op, attributes and types; otherwise by the op alone.
  void label_all(bool strict) {
    for (Side& side : sides_) {
      side.label.resize(side.flat.size());
      for (std::uint32_t item = 0; item < side.flat.size(); ++item)
        side.label[item] = strict ? side.flat.label(item) : side.flat.weak_label(item);
      steps_ += side.flat.size();
    }
  }

  /// Pairs items with equal labels until no more are found. Without `strict` labels, only items
  /// that matched neighbours determine.
  void stage(bool strict) {
    for (Side& side : sides_) {
      side.up = side.down = side.around = side.label;
      side.anchored.assign(side.flat.size(), false);
    }
    std::size_t before = pairs_;
    for (int round = 1; round <= kRounds && rounds_ < kMostRounds && find_some(strict); ++round) {
      ++rounds_;
      if (round % kSlowRounds != 0) continue;
      const std::size_t open = std::min(sides_[0].open.size(), sides_[1].open.size());
      if ((pairs_ - before) * kSlowPart < open) return;
      before = pairs_;
    }
  }

  /// The surest kind of pairs of which there are any.
  bool find_some(bool strict) {
    for (Side& side : sides_)
      std::erase_if(side.open, [&](std::uint32_t item) { return side.matched(item); });
    if (sides_[0].open.empty() || sides_[1].open.empty()) return false;
    for (int s = 0; s < 2; ++s) {
      hash_up(s);
      hash_down(s);
    }
    return some([&] { pair_unique(whole, any); }) || some([&] { pair_namesakes(); }) ||
           some([&] { pair_unique(up, anchored); }) || some([&] { pair_unique(down, has_uses); }) ||
           (strict && some([&] { by_surroundings([&] { pair_unique(around, any); }); })) ||
           some([&] { pair_unique(up, has_operands); }) || some([&] { spread(); }) ||
           (strict && (some([&] { pair_in_order(whole, ready); }) ||
                       some([&] { by_surroundings([&] { pair_in_order(around, any); }); })));
  }
  template <class Way>
  bool some(const Way& way) {
    const std::size_t before = pairs_;
    way();
    return pairs_ > before;
  }
  /// From the widest to the nearest, until there are pairs.
  template <class Way>
  void by_surroundings(const Way& way) {
    const std::size_t before = pairs_;
    for (const int radius : kRadii) {
      for (int s = 0; s < 2; ++s) hash_around(s, radius);
      way();
      if (pairs_ > before) return;
    }
  }

  // ---- hashes
  /// Hashes each item's computation, from matched items or inputs on.
  void hash_up(int s) {
    Side& side = sides_[s];
    for (const std::uint32_t item : side.open) {
      std::uint64_t h = side.label[item];
      bool anchored = !side.flat.is_input(item);
      for (const ItemResult& o : side.flat.operands(item)) {
        h = combine(h, o.item == kNoItem ? 0 : combine(known(s, side.up, o.item), o.result));
        anchored = anchored && (o.item == kNoItem || side.matched(o.item) || side.anchored[o.item]);
      }
      side.up[item] = h;
      side.anchored[item] = anchored;
      steps_ += 1 + side.flat.operands(item).size();
    }
  }

  /// Hashes each item's uses, up to matched items or outputs.
  void hash_down(int s) {
    Side& side = sides_[s];
    for (auto item = side.open.rbegin(); item != side.open.rend(); ++item)
      side.down[*item] = combine(side.label[*item], hash_of_uses(s, side.down, *item));
  }

  /// Hashes each item's surroundings, within some edges in either direction.
  void hash_around(int s, int radius) {
    Side& side = sides_[s];
    Keys now = side.label;
    for (int i = 0; i < radius; ++i) {
      Keys next = now;
      for (const std::uint32_t item : side.open) {
        std::uint64_t h = combine(now[item], hash_of_uses(s, now, item));
        for (const ItemResult& o : side.flat.operands(item))
          h = combine(h, o.item == kNoItem ? 0 : combine(known(s, now, o.item), o.result));
        next[item] = h;
        steps_ += side.flat.operands(item).size();
      }
      now = std::move(next);
    }
    side.around = std::move(now);
  }

  /// A sum, so that the order of the users does not count.
  std::uint64_t hash_of_uses(int s, const Keys& keys, std::uint32_t item) {
    const std::span<const ItemUse> uses = sides_[s].flat.uses(item);
    std::uint64_t sum = 0;
    for (const ItemUse& use : uses)
      sum += mix(combine(combine(use.user == kNoItem ? 3 : known(s, keys, use.user), use.slot),
                         use.result));
    steps_ += 1 + uses.size();
    return sum;
  }

  // ---- ways to find pairs
  /// Calls `take` with the open items of either side that have equal keys, for each such key.
  template <class Key, class Filter, class Take>
  void buckets(const Key& key, const Filter& filter, const Take& take) {
    std::array<std::vector<std::pair<std::uint64_t, std::uint32_t>>, 2> lists;
    for (int s = 0; s < 2; ++s) {
      for (const std::uint32_t item : sides_[s].open)
        if (!sides_[s].matched(item) && filter(sides_[s], item))
          lists[s].emplace_back(key(sides_[s], item), item);
      std::sort(lists[s].begin(), lists[s].end());
      steps_ += sides_[s].open.size();
    }
    const auto end_of = [](const auto& list, std::size_t i) {
      std::size_t end = i;
      while (end < list.size() && list[end].first == list[i].first) ++end;
      return end;
    };
    for (std::size_t i = 0, j = 0; i < lists[0].size() && j < lists[1].size();) {
      const std::uint64_t a = lists[0][i].first, b = lists[1][j].first;
      const std::size_t end_a = a <= b ? end_of(lists[0], i) : i;
      const std::size_t end_b = b <= a ? end_of(lists[1], j) : j;
      if (a == b)
        take(std::span(lists[0]).subspan(i, end_a - i), std::span(lists[1]).subspan(j, end_b - j));
      i = end_a;
      j = end_b;
    }
  }

  template <class Key, class Filter>
  void pair_unique(const Key& key, const Filter& filter) {
    buckets(key, filter, [&](auto a, auto b) {
      if (a.size() == 1 && b.size() == 1 && may_pair(a[0].second, b[0].second))
        pair(a[0].second, b[0].second);
    });
  }

  /// Pairs equal items in order. With `ready`, an item that reads one of several equal items waits
  /// until those are paired.
  template <class Key, class Filter>
  void pair_in_order(const Key& key, const Filter& filter) {
    buckets(key, filter, [&](auto a, auto b) {
      if (a.size() != b.size()) return;
      for (std::size_t i = 0; i < a.size(); ++i)
        if (may_pair(a[i].second, b[i].second)) pair(a[i].second, b[i].second);
    });
  }

  /// Equal names, where more neighbours agree than not: the numbers of an exporter shift when a
  /// node is inserted.
  void pair_namesakes() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> agreed;
    for (const std::uint32_t a : sides_[0].open) {
      const std::uint32_t b = sides_[0].namesake[a];
      if (b != kNoItem && may_pair(a, b) && neighbours_agree(a, b)) agreed.emplace_back(a, b);
    }
    for (const auto& [a, b] : agreed) pair(a, b);
  }

  /// The partner, or who would be by name.
  [[nodiscard]] std::uint32_t likely(std::uint32_t a) const {
    return sides_[0].matched(a) ? sides_[0].partner[a] : sides_[0].namesake[a];
  }

  bool neighbours_agree(std::uint32_t a, std::uint32_t b) {
    const FlatGraph &before = sides_[0].flat, &after = sides_[1].flat;
    std::size_t for_it = 0, against = 0;
    const auto vote = [&](bool agrees) { ++(agrees ? for_it : against); };
    const auto of_a = before.operands(a), of_b = after.operands(b);
    for (std::size_t k = 0; k < std::min(of_a.size(), of_b.size()); ++k) {
      if (of_a[k].item == kNoItem || likely(of_a[k].item) == kNoItem) continue;
      vote(ItemResult{likely(of_a[k].item), of_a[k].result} == of_b[k]);
    }
    for (const ItemUse& use : before.uses(a)) {
      if (use.user == kNoItem || likely(use.user) == kNoItem) continue;
      const auto read = after.operands(likely(use.user));
      vote(use.slot < read.size() && read[use.slot] == ItemResult{b, use.result});
    }
    steps_ += of_a.size() + before.uses(a).size();
    return for_it > against || against == 0;
  }

  /// Propagates from each pair with open neighbours to those that are unambiguous, transitively.
  void spread() {
    std::vector<std::uint32_t> queue;
    for (const std::uint32_t item : sides_[0].open) {
      for (const ItemResult& o : sides_[0].flat.operands(item))
        if (o.item != kNoItem && sides_[0].matched(o.item)) queue.push_back(o.item);
      for (const ItemUse& use : sides_[0].flat.uses(item))
        if (use.user != kNoItem && sides_[0].matched(use.user)) queue.push_back(use.user);
      steps_ += 1 + sides_[0].flat.operands(item).size() + sides_[0].flat.uses(item).size();
    }
    std::sort(queue.begin(), queue.end());
    queue.erase(std::unique(queue.begin(), queue.end()), queue.end());
    for (std::size_t i = 0; i < queue.size(); ++i) {
      spread_to_operands(queue[i], queue);
      spread_to_users(queue[i], queue);
    }
  }

  void spread_to_operands(std::uint32_t a, std::vector<std::uint32_t>& queue) {
    const auto of_a = sides_[0].flat.operands(a);
    const auto of_b = sides_[1].flat.operands(sides_[0].partner[a]);
    steps_ += of_a.size();
    for (std::size_t k = 0; k < std::min(of_a.size(), of_b.size()); ++k) {
      if (of_a[k].item == kNoItem || of_b[k].item == kNoItem || of_a[k].result != of_b[k].result ||
          !may_pair(of_a[k].item, of_b[k].item))
        continue;
      pair(of_a[k].item, of_b[k].item);
      queue.push_back(of_a[k].item);
    }
  }

  void spread_to_users(std::uint32_t a, std::vector<std::uint32_t>& queue) {
    using Use = std::pair<std::uint64_t, std::uint32_t>;
    const auto open_uses = [&](const Side& side, std::uint32_t item) {
      std::vector<Use> out;
      for (const ItemUse& use : side.flat.uses(item))
        if (use.user != kNoItem && !side.matched(use.user))
          out.emplace_back(combine(combine(side.label[use.user], use.slot), use.result), use.user);
      steps_ += side.flat.uses(item).size();
      std::sort(out.begin(), out.end());
      return out;
    };
    const std::vector<Use> of_a = open_uses(sides_[0], a);
    if (of_a.empty()) return;
    const std::vector<Use> of_b = open_uses(sides_[1], sides_[0].partner[a]);
    const auto by_key = [](const Use& x, const Use& y) { return x.first < y.first; };
    for (const Use& use : of_a) {
      const auto [first, last] = std::equal_range(of_b.begin(), of_b.end(), use, by_key);
      const auto [own, own_last] = std::equal_range(of_a.begin(), of_a.end(), use, by_key);
      if (last - first != 1 || own_last - own != 1 || !may_pair(use.second, first->second))
        continue;
      pair(use.second, first->second);
      queue.push_back(use.second);
    }
  }

  /// Another op with the same operands, and either a use of the same place or the same name.
  void pair_replaced() {
    for (Side& side : sides_)
      std::erase_if(side.open, [&](std::uint32_t item) { return side.matched(item); });
    const auto reads = [&](const Side& side, std::uint32_t item) {
      std::uint64_t h = 5;
      const int s = &side == &sides_[0] ? 0 : 1;
      for (const ItemResult& o : side.flat.operands(item))
        h = combine(h, o.item == kNoItem ? 0 : combine(pair_hash(s, o.item), o.result));
      return h;
    };
    buckets(reads, ready, [&](auto a, auto b) {
      if (a.size() != 1 || b.size() != 1) return;
      const auto [x, y] = std::pair{a[0].second, b[0].second};
      if (!sides_[0].flat.operands(x).empty() && (sides_[0].namesake[x] == y || same_place(x, y)))
        pair(x, y);
    });
  }

  bool same_place(std::uint32_t a, std::uint32_t b) {
    const auto uses = sides_[0].flat.uses(a);
    steps_ += uses.size();
    return std::any_of(uses.begin(), uses.end(), [&](const ItemUse& use) {
      if (use.user == kNoItem) {
        const std::vector<ValueId>& outputs = sides_[1].flat.graph().outputs();
        return use.slot < outputs.size() && sides_[1].flat.of(outputs[use.slot]).item == b;
      }
      if (!sides_[0].matched(use.user)) return false;
      const auto read = sides_[1].flat.operands(sides_[0].partner[use.user]);
      return use.slot < read.size() && read[use.slot] == ItemResult{b, use.result};
    });
  }

  [[nodiscard]] GraphMatch answer() const {
    GraphMatch out;
    out.steps = steps_;
    fill(0, out.node_after, out.value_after);
    fill(1, out.node_before, out.value_before);
    return out;
  }
  void fill(int s, std::vector<NodeId>& nodes, std::vector<ValueId>& values) const {
    const FlatGraph &flat = sides_[s].flat, &other = sides_[1 - s].flat;
    const Graph &own = flat.graph(), &others = other.graph();
    nodes.resize(own.node_bound());
    values.resize(own.value_bound());
    for (std::uint32_t item = 0; item < flat.size(); ++item) {
      const std::uint32_t partner = sides_[s].partner[item];
      if (partner == kNoItem) continue;
      if (flat.is_input(item)) {
        values[flat.input(item).index] = other.input(partner);
        continue;
      }
      const NodeId n = flat.node(item), m = other.node(partner);
      nodes[n.index] = m;
      for (std::size_t r = 0; r < std::min(own.result_count(n), others.result_count(m)); ++r)
        values[own.result(n, r).index] = others.result(m, r);
    }
  }

  std::array<Side, 2> sides_;
  std::size_t pairs_ = 0, steps_ = 0;
  int rounds_ = 0;
};

}  // namespace

GraphMatch match_graphs(const Graph& before, const Graph& after) {
  return Matcher(before, after).run();
}

}  // namespace pw
