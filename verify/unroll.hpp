// A pattern with lists as one without, for lists of a given length: what graphs are drawn from.
#pragma once

#include "dsl/ruleset.hpp"

namespace pw {

/// The left side with `count` members or elements for each list, names of lists numbered, and what
/// `unless` describes left out. The right side stays as it is: such a rule is not to be applied.
Rule unroll(const Rule& rule, std::size_t count);

}  // namespace pw
