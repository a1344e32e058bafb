// Parses relations between inputs and outputs of graphs; see proof/equal/relation.hpp.
#pragma once

#include <string>
#include <string_view>

#include "base/diagnostic.hpp"
#include "proof/equal/relation.hpp"

namespace pw {

/// Fails with PW1419; `place` names the source in errors.
Result<proof::Relation> parse_relation(std::string_view text, const std::string& place);

}  // namespace pw
