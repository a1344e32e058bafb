// Exports place_intervals and its two heuristics, and peak.
#include "splitter/offsets.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace pw {
namespace {

constexpr std::size_t kManyIntervals = 4096;  // place_by_size is quadratic

std::vector<std::size_t> sorted_indices(std::size_t n, auto less) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), less);
  return order;
}

/// Free gaps below the top, by offset and by (size, offset); neighbours are joined.
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
  /// A gap that ends at the top is used up before the top rises.
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

std::int64_t total_of(const std::vector<Interval>& intervals,
                      const std::vector<std::int64_t>& offsets) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i)
    total = std::max(total, offsets[i] + intervals[i].bytes);
  return total;
}

/// The smallest gap between `taken` blocks that holds `bytes`, else the place above them all.
std::int64_t best_gap(std::vector<std::pair<std::int64_t, std::int64_t>> taken,
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

Placement place_by_time(const std::vector<Interval>& intervals) {
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

Placement place_by_size(const std::vector<Interval>& intervals) {
  Placement out;
  out.offsets.assign(intervals.size(), 0);
  const auto order = sorted_indices(intervals.size(), [&](std::size_t a, std::size_t b) {
    if (intervals[a].bytes != intervals[b].bytes) return intervals[a].bytes > intervals[b].bytes;
    if (intervals[a].begin != intervals[b].begin) return intervals[a].begin < intervals[b].begin;
    return a < b;
  });
  std::vector<std::size_t> placed;
  for (const std::size_t i : order) {
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (const std::size_t j : placed)
      if (intervals[j].begin <= intervals[i].end && intervals[i].begin <= intervals[j].end)
        taken.emplace_back(out.offsets[j], intervals[j].bytes);
    out.offsets[i] = best_gap(std::move(taken), intervals[i].bytes);
    placed.push_back(i);
  }
  out.total = total_of(intervals, out.offsets);
  return out;
}

Placement place_intervals(const std::vector<Interval>& intervals) {
  Placement by_time = place_by_time(intervals);
  if (intervals.size() > kManyIntervals || by_time.total == peak(intervals)) return by_time;
  Placement by_size = place_by_size(intervals);
  return by_size.total < by_time.total ? by_size : by_time;
}

std::int64_t peak(const std::vector<Interval>& intervals) {
  std::map<std::size_t, std::int64_t> change;
  for (const Interval& interval : intervals) {
    change[interval.begin] += interval.bytes;
    change[interval.end + 1] -= interval.bytes;
  }
  std::int64_t now = 0, most = 0;
  for (const auto& [position, bytes] : change) most = std::max(most, now += bytes);
  return most;
}

}  // namespace pw
