// Offsets for byte blocks that live over intervals of a linear schedule, so that two blocks alive
// at one position never overlap.
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

/// The better of two heuristics; only the first where there are many intervals.
Placement place_intervals(const std::vector<Interval>& intervals);
/// A sweep over time: each block goes into the smallest free gap that holds it. O(n log n) for few
/// gaps.
Placement place_by_time(const std::vector<Interval>& intervals);
/// Largest block first, each into the smallest gap between the blocks it meets. O(n²).
Placement place_by_size(const std::vector<Interval>& intervals);
/// The largest sum of bytes alive at one position: no placement needs less.
std::int64_t peak(const std::vector<Interval>& intervals);

}  // namespace pw
