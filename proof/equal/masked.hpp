// A lookup in a table of which a rank holds the rows [first, last): the rank moves the index, and
// leaves out what is elsewhere by a mask. Both are computed of one tensor of indices by comparisons
// and sums, so that they are linear in it between a few numbers, at which they are evaluated.
#pragma once

#include <cstdint>
#include <optional>

#include "proof/equal/wholes.hpp"

namespace pw::proof {

struct MaskedLookup {
  ValueId index;      ///< what the rank reads at, counted from `first`
  ValueId mask;       ///< of b8
  bool where = true;  ///< the mask is this where the row counts
  std::int64_t first = 0, last = 0, rows = 0;
};

/// A step by which a rank changes the rows [first, last) at their index, and no other one.
struct MaskedStep {
  ValueId index;  ///< counted from `first`
  ValueId step;   ///< 0 for an index of another rank
  std::int64_t first = 0, last = 0, rows = 0;
};
/// How far each index of the whole table is changed, the same for all; nothing where it is not so.
std::optional<double> step_of_rows(const Wholes& wholes, const MaskedStep& step, ValueId base);

/// The tensor that both are computed of, without views; nothing where they read several.
std::optional<ValueId> common_index(const Wholes& wholes, ValueId index, ValueId mask);
/// Whether each index of the whole table in [first, last) is read at its place, and each other one
/// of [0, rows) is left out.
bool reads_its_rows(const Wholes& wholes, const MaskedLookup& lookup, ValueId base);

}  // namespace pw::proof
