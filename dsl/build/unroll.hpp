// Expands the lists of a pattern to a given length, for drawing graphs and comparing types.
#pragma once

#include "dsl/ruleset.hpp"

namespace pw {

/// Returns the name by which unroll() refers to an element of a list: `y#0`.
std::string element_name(const std::string& list, std::size_t i);
/// Returns the left side with `count` members or elements for each list, with numbered names of
/// lists and without `unless`. The right side stays unchanged: such a rule must not be applied.
Rule unroll(const Rule& rule, std::size_t count);

}  // namespace pw
