#include <algorithm>

#include "splitter/plan.hpp"

namespace pw {

std::vector<Range> make_ranges(std::vector<std::int64_t> ends, std::int64_t max_tokens,
                               std::int64_t first) {
  ends.push_back(max_tokens);
  std::sort(ends.begin(), ends.end());
  std::vector<Range> ranges;
  std::int64_t begin = first;
  for (const std::int64_t end : ends) {
    if (end < begin || end > max_tokens) continue;
    ranges.push_back({begin, end});
    begin = end + 1;
  }
  return ranges;
}

Range compiled_for(const Plan& plan, std::int64_t rows) {
  if (std::binary_search(plan.compile_sizes.begin(), plan.compile_sizes.end(), rows))
    return {rows, rows};
  for (const Range& range : plan.ranges)
    if (rows <= range.end) return range;
  return {rows, rows};
}

}  // namespace pw
