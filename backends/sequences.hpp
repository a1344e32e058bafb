// Which rows of a step belong to which sequence.
#pragma once

#include <vector>

#include "backends/backend.hpp"

namespace pw {

struct RowSpan {
  std::int64_t begin = 0, end = 0;
};

/// The rows of each sequence of the step, in order; without a step, all rows are one sequence. Rows
/// that no sequence has are padding, and are in no span.
[[nodiscard]] std::vector<RowSpan> sequence_rows(const RunContext& context, std::int64_t rows);

}  // namespace pw
