// Reads an `explore` item of a rule file into a request.
#pragma once

#include "studies/explore_space.hpp"

namespace pw {

/// Completes a request from its item, or with defaults. Fails with PW1101 if the item does not
/// exist.
Result<ExploreRequest> with_explore_item(const LoadedRules& rules, const ExploreRequest& stated);

}  // namespace pw
