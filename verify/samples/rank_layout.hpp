// Assignments of a check's ranks to the groups that collectives name. A rule must hold for each
// layout: if one group spanned all ranks, a confusion of groups would remain undetected.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/backend.hpp"

namespace pw {

struct RankLayout {
  std::int64_t ranks = 1;
  std::int64_t world = 1;      ///< value of every `world`
  std::int64_t unstated = 1;   ///< size of a group that no op states
  bool strided_first = false;  ///< the first group is strided, the second is not
};

/// Returns the layouts: all groups span all ranks; then contiguous and strided parts; then groups
/// of one; finally parts only for groups whose size no op states.
[[nodiscard]] std::vector<RankLayout> layouts_of(std::int64_t ranks);

/// Returns the ranks of each group that the two graphs (without bodies) name. Stated sizes are
/// kept; strides alternate, and so do sizes if the parts are single ranks. Empty if every group
/// spans all ranks.
[[nodiscard]] RankGroups groups_of(const RankLayout& layout, const Graph& before,
                                   const Graph& after);
/// Prints a layout: "on 4 ranks, where `tp` is 2 and `dp` is 2 with stride 2"; empty for one rank.
[[nodiscard]] std::string print(const RankLayout& layout, const RankGroups& groups);

}  // namespace pw
