// Explanations for programs.
#pragma once

#include <string>

#include "rewriter/explain.hpp"

namespace pw::cli {

/// { "rule", "matches", "near_misses": [ { "code", "rule", "at", "message", … } ] }
std::string explanation_to_json(const Explanation& found, const std::string& rule,
                                const RuleSet& rules, const Graph& graph);

}  // namespace pw::cli
