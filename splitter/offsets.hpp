// Offsets of byte blocks that are alive over intervals of a linear schedule, such that blocks alive
// at one position never overlap. This is dynamic storage allocation with known lifetimes, which is
// NP-hard (Garey and Johnson 1979, SR2). The result is the best of several greedy placements; the
// search stops early at the lower bound `peak`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pw {

inline constexpr std::int64_t kAlignment = 256;
constexpr std::int64_t align(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct Lifetime {
  std::size_t begin = 0, end = 0;  ///< inclusive
  std::int64_t bytes = 0;          ///< aligned
};

struct Placement {
  std::vector<std::int64_t> offsets;  ///< one for each interval
  std::int64_t total = 0;
};

/// Returns the best placement of place_by_time and, up to 4096 intervals, of place_in_order by
/// size, by length, and by bytes · time. For few intervals it also tries orders derived from these.
Placement place_intervals(const std::vector<Lifetime>& intervals);
/// Places blocks in a sweep over time: each goes into the smallest free gap that holds it. O(n log
/// n) for few gaps.
Placement place_by_time(const std::vector<Lifetime>& intervals);
/// Places blocks in the given order, each into the smallest gap between the blocks whose lifetimes
/// overlap its own. O(n²).
Placement place_in_order(const std::vector<Lifetime>& intervals,
                         const std::vector<std::size_t>& order);
/// Returns the largest sum of bytes alive at one position, which is a lower bound of any placement.
std::int64_t peak(const std::vector<Lifetime>& intervals);

}  // namespace pw
