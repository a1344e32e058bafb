// Relations between the inputs and outputs of graphs, from text: see proof/equal/relation.hpp.
#pragma once

#include <string>
#include <string_view>

#include "base/diagnostic.hpp"
#include "proof/equal/relation.hpp"

namespace pw {

/// `place` is named in errors: PW1419.
Result<proof::Relation> parse_relation(std::string_view text, const std::string& place);

}  // namespace pw
