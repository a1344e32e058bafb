// Proofs about vocabulary-parallel lookups, where a rank holds the rows [first, last) of a table.
// The rank shifts the index and masks rows that it does not hold. Index and mask are computed from
// one index tensor by comparisons and sums. They are therefore piecewise linear in it, so
// evaluating them at the breakpoints suffices.
#pragma once

#include <cstdint>
#include <optional>

#include "proof/equal/wholes.hpp"

namespace pw::proof {

struct MaskedLookup {
  ValueId index;      ///< index that the rank reads, relative to `first`
  ValueId mask;       ///< mask of dtype b8
  bool where = true;  ///< value of the mask where the row counts
  std::int64_t first = 0, last = 0, rows = 0;
};

/// A step by which a rank changes the rows [first, last) at their index, and no other row.
struct MaskedStep {
  ValueId index;  ///< relative to `first`
  ValueId step;   ///< 0 if the index belongs to another rank
  std::int64_t first = 0, last = 0, rows = 0;
};
/// Returns the change at each index of the whole table if it is the same for all; otherwise
/// nothing.
std::optional<double> step_of_rows(const Wholes& wholes, const MaskedStep& step, ValueId base);

/// Returns the tensor that both are computed from, with views removed; nothing if there are
/// several.
std::optional<ValueId> common_index(const Wholes& wholes, ValueId index, ValueId mask);
/// Returns true if each index of the whole table in [first, last) reads its own row and every other
/// index in [0, rows) is masked.
bool reads_its_rows(const Wholes& wholes, const MaskedLookup& lookup, ValueId base);

}  // namespace pw::proof
