// Exports the row spans of a step.
#include "backends/sequences.hpp"

#include <algorithm>

namespace pw {

std::int64_t Step::tokens() const {
  std::int64_t total = 0;
  for (const Sequence& sequence : sequences) total += sequence.new_tokens;
  return total;
}

std::vector<RowSpan> sequence_rows(const RunContext& context, std::int64_t rows) {
  if (context.step == nullptr) return {{0, rows}};
  std::vector<RowSpan> spans;
  std::int64_t begin = 0;
  for (const Sequence& sequence : context.step->sequences) {
    const std::int64_t end = std::min(begin + sequence.new_tokens, rows);
    spans.push_back({begin, end});
    begin = end;
  }
  return spans;
}

}  // namespace pw
