// Best fit over intervals, for dynamic storage allocation with known lifetimes. In a given order,
// each block goes into the smallest gap that holds it between the blocks alive at the same time,
// else on top.
//
// * Orders: by begin (a sweep with a free list, O(n log n)); and up to 4096 blocks by size, by
//   length, and by area (O(n²); greedy by size as in Pisarchyk and Lee 2020).
// * Local search, up to 256 blocks: the block that ends on top moves halfway to the front of the
//   order, at most 64 times.
//
// Invariant: blocks alive at one position are disjoint. Results are deterministic: ties go by
// begin, then by index. The search ends early at the lower bound `peak`.
#include "splitter/offsets.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace pw {
namespace {

constexpr std::size_t kManyIntervals = 4096;  // place_in_order is quadratic
constexpr std::size_t kFewIntervals = 256;    // limit for the local search
constexpr int kTries = 64;

std::vector<std::size_t> sorted_indices(std::size_t n, auto less) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), less);
  return order;
}

std::int64_t length(const Lifetime& interval) {
  return static_cast<std::int64_t>(interval.end - interval.begin) + 1;
}

/// Sorts by key, largest first; ties by begin and then by index.
std::vector<std::size_t> sorted_by(const std::vector<Lifetime>& intervals, auto key) {
  return sorted_indices(intervals.size(), [&](std::size_t a, std::size_t b) {
    const auto first = key(intervals[a]), second = key(intervals[b]);
    if (first != second) return first > second;
    if (intervals[a].begin != intervals[b].begin) return intervals[a].begin < intervals[b].begin;
    return a < b;
  });
}
std::vector<std::size_t> largest_first(const std::vector<Lifetime>& intervals) {
  return sorted_by(intervals, [](const Lifetime& i) { return i.bytes; });
}
std::vector<std::size_t> longest_first(const std::vector<Lifetime>& intervals) {
  return sorted_by(intervals, [](const Lifetime& i) { return std::pair(length(i), i.bytes); });
}
std::vector<std::size_t> area_first(const std::vector<Lifetime>& intervals) {
  return sorted_by(intervals, [](const Lifetime& i) {
    return static_cast<double>(i.bytes) * static_cast<double>(length(i));
  });
}

/// Free gaps below the top, by offset and by (size, offset); adjacent gaps are merged.
class Gaps {
 public:
  std::int64_t take(std::int64_t bytes) {
    const auto best = by_size_.lower_bound({bytes, 0});
    if (best == by_size_.end()) return grow(bytes);
    const auto [size, offset] = *best;
    remove(offset, size);
    if (size > bytes) insert(offset + bytes, size - bytes);
    return offset;
  }

  void give(std::int64_t offset, std::int64_t bytes) {
    auto after = by_offset_.lower_bound(offset);
    if (after != by_offset_.end() && offset + bytes == after->first) {
      const auto [o, s] = *after;
      remove(o, s);
      bytes += s;
    }
    auto before = by_offset_.lower_bound(offset);
    if (before != by_offset_.begin()) {
      const auto [o, s] = *std::prev(before);
      if (o + s == offset) {
        remove(o, s);
        offset = o;
        bytes += s;
      }
    }
    insert(offset, bytes);
  }

  [[nodiscard]] std::int64_t top() const { return top_; }

 private:
  /// Extends the top; a gap that ends at the top is used up first.
  std::int64_t grow(std::int64_t bytes) {
    std::int64_t offset = top_;
    if (!by_offset_.empty()) {
      const auto [o, s] = *by_offset_.rbegin();
      if (o + s == top_) {
        remove(o, s);
        offset = o;
      }
    }
    top_ = offset + bytes;
    return offset;
  }
  void insert(std::int64_t offset, std::int64_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(std::int64_t offset, std::int64_t bytes) {
    by_offset_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::map<std::int64_t, std::int64_t> by_offset_;
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;
  std::int64_t top_ = 0;
};

std::int64_t total_of(const std::vector<Lifetime>& intervals,
                      const std::vector<std::int64_t>& offsets) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i)
    total = std::max(total, offsets[i] + intervals[i].bytes);
  return total;
}

/// Returns the smallest gap between `taken` blocks that holds `bytes`, else the place above them
/// all.
std::int64_t best_gap(std::vector<std::pair<std::int64_t, std::int64_t>>& taken,
                      std::int64_t bytes) {
  std::sort(taken.begin(), taken.end());
  std::int64_t end = 0, best = -1, best_size = 0;
  for (const auto& [offset, size] : taken) {
    const std::int64_t gap = offset - end;
    if (gap >= bytes && (best < 0 || gap < best_size)) {
      best = end;
      best_size = gap;
    }
    end = std::max(end, offset + size);
  }
  return best < 0 ? end : best;
}

}  // namespace

Placement place_by_time(const std::vector<Lifetime>& intervals) {
  Placement out;
  out.offsets.assign(intervals.size(), 0);
  const auto starts = sorted_indices(intervals.size(), [&](std::size_t a, std::size_t b) {
    if (intervals[a].begin != intervals[b].begin) return intervals[a].begin < intervals[b].begin;
    if (intervals[a].bytes != intervals[b].bytes) return intervals[a].bytes > intervals[b].bytes;
    return a < b;
  });
  std::set<std::pair<std::size_t, std::size_t>> alive;  // by end
  Gaps gaps;
  for (const std::size_t i : starts) {
    while (!alive.empty() && alive.begin()->first < intervals[i].begin) {
      const std::size_t dead = alive.begin()->second;
      gaps.give(out.offsets[dead], intervals[dead].bytes);
      alive.erase(alive.begin());
    }
    if (intervals[i].bytes == 0) continue;
    out.offsets[i] = gaps.take(intervals[i].bytes);
    alive.emplace(intervals[i].end, i);
  }
  out.total = gaps.top();
  return out;
}

Placement place_in_order(const std::vector<Lifetime>& intervals,
                         const std::vector<std::size_t>& order) {
  Placement out;
  out.offsets.assign(intervals.size(), 0);
  std::vector<std::size_t> placed;
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;
  for (const std::size_t i : order) {
    taken.clear();
    for (const std::size_t j : placed)
      if (intervals[j].begin <= intervals[i].end && intervals[i].begin <= intervals[j].end)
        taken.emplace_back(out.offsets[j], intervals[j].bytes);
    out.offsets[i] = best_gap(taken, intervals[i].bytes);
    placed.push_back(i);
  }
  out.total = total_of(intervals, out.offsets);
  return out;
}

Placement place_intervals(const std::vector<Lifetime>& intervals) {
  const std::int64_t least = peak(intervals);
  Placement best = place_by_time(intervals);
  const auto take = [&](Placement placement) {
    const bool better = placement.total < best.total;
    if (better) best = std::move(placement);
    return better;
  };
  if (intervals.size() > kManyIntervals) return best;
  std::vector<std::vector<std::size_t>> orders{largest_first(intervals), longest_first(intervals),
                                               area_first(intervals)};
  for (auto order = orders.begin(); order != orders.end() && best.total > least; ++order) {
    take(place_in_order(intervals, *order));
    if (intervals.size() > kFewIntervals) continue;
    // The top block is placed earlier next time, while that keeps helping.
    Placement now = place_in_order(intervals, *order);
    for (int tries = 0; tries < kTries && best.total > least; ++tries) {
      const auto top = std::find_if(order->begin(), order->end(), [&](std::size_t i) {
        return now.offsets[i] + intervals[i].bytes == now.total;
      });
      if (top == order->begin()) break;
      // Halfway to the front, so that it passes some but not all of the blocks below it.
      const auto to = order->begin() + (top - order->begin()) / 2;
      std::rotate(to, top, top + 1);
      now = place_in_order(intervals, *order);
      take(now);
    }
  }
  return best;
}

std::int64_t peak(const std::vector<Lifetime>& intervals) {
  std::map<std::size_t, std::int64_t> change;
  for (const Lifetime& interval : intervals) {
    change[interval.begin] += interval.bytes;
    change[interval.end + 1] -= interval.bytes;
  }
  std::int64_t now = 0, most = 0;
  for (const auto& [position, bytes] : change) most = std::max(most, now += bytes);
  return most;
}

}  // namespace pw
