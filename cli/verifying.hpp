// What the command verify prints, as data.
#pragma once

#include <string>

#include "verify/rule_check.hpp"

namespace pw::cli {

/// One object on one line: rule, verdict, ulps, only_for, reason, by_dtype, graphs, samples, ranks,
/// guards.
[[nodiscard]] std::string rule_check_to_json(const RuleCheck& check);

}  // namespace pw::cli
