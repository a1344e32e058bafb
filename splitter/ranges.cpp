// Exports make_ranges: inclusive token ranges from their end points.
#include <algorithm>

#include "splitter/plan.hpp"

namespace pw {

std::vector<Range> make_ranges(std::vector<std::int64_t> ends, std::int64_t max_tokens) {
  ends.push_back(max_tokens);
  std::sort(ends.begin(), ends.end());
  std::vector<Range> ranges;
  std::int64_t begin = 1;
  for (const std::int64_t end : ends) {
    if (end < begin || end > max_tokens) continue;
    ranges.push_back({begin, end});
    begin = end + 1;
  }
  return ranges;
}

}  // namespace pw
