// An `explore` item of a rule file as a request.
#pragma once

#include "studies/explore_space.hpp"

namespace pw {

/// What the request leaves open, as its item says, or by default. PW1101 where there is no such
/// item.
Result<ExploreRequest> with_explore_item(const LoadedRules& rules, const ExploreRequest& stated);

}  // namespace pw
