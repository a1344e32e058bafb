// Expands the lists of a pattern to a given length: from this, graphs are drawn and types compared.
#pragma once

#include "dsl/ruleset.hpp"

namespace pw {

/// How unroll() names an element of a list: `y#0`.
std::string element_name(const std::string& list, std::size_t i);
/// The left side with `count` members or elements for each list, names of lists numbered, and what
/// `unless` describes left out. The right side stays as it is: such a rule is not to be applied.
Rule unroll(const Rule& rule, std::size_t count);

}  // namespace pw
