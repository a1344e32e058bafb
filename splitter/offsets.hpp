// Offsets of byte blocks that are alive over intervals of a linear schedule, so that two blocks
// alive at one position never overlap. This is dynamic storage allocation with known lifetimes,
// which is NP-hard; the placement is the best of some greedy ones, and ends early at the lower
// bound `peak`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pw {

inline constexpr std::int64_t kAlignment = 256;
constexpr std::int64_t align(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct Interval {
  std::size_t begin = 0, end = 0;  ///< inclusive
  std::int64_t bytes = 0;          ///< aligned
};

struct Placement {
  std::vector<std::int64_t> offsets;  ///< one an interval
  std::int64_t total = 0;
};

/// The best of place_by_time and, up to 4096 intervals, place_in_order with the largest, the
/// longest and those of most bytes · time first; of few intervals, with orders that these lead to
/// as well.
Placement place_intervals(const std::vector<Interval>& intervals);
/// A sweep over time: each block goes into the smallest free gap that holds it. O(n log n) for few
/// gaps.
Placement place_by_time(const std::vector<Interval>& intervals);
/// In the given order, each into the smallest gap between the blocks it meets. O(n²).
Placement place_in_order(const std::vector<Interval>& intervals,
                         const std::vector<std::size_t>& order);
/// Largest block first.
Placement place_by_size(const std::vector<Interval>& intervals);
/// The largest sum of bytes alive at one position: no placement needs less.
std::int64_t peak(const std::vector<Interval>& intervals);

}  // namespace pw
