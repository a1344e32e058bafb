// How the ranks of a check are shared out to the groups that collectives name. A rule must hold for
// each: where a group is all ranks, any group is as good as any other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/backend.hpp"

namespace pw {

struct RankLayout {
  std::int64_t ranks = 1;
  std::int64_t world = 1;     ///< what every `world` is
  std::int64_t unstated = 1;  ///< the ranks of a group whose size no op says
  bool apart = false;         ///< the first group is strided, and not the second
};

/// All groups all ranks; then parts, of neighbours and strided; then groups of one; then only
/// groups whose size no op says are parts.
[[nodiscard]] std::vector<RankLayout> layouts_of(std::int64_t ranks);

/// The groups that the two graphs (without bodies) name, each with its ranks: sizes that ops state
/// stay, strides alternate, and so do sizes where the parts are single ranks. Empty where all are
/// all ranks.
[[nodiscard]] RankGroups groups_of(const RankLayout& layout, const Graph& before,
                                   const Graph& after);
/// "on 4 ranks, where `tp` is 2 and `dp` is 2 with stride 2"; empty for one rank.
[[nodiscard]] std::string print(const RankLayout& layout, const RankGroups& groups);

}  // namespace pw
