// Explanations for programs.
#pragma once

#include <string>

#include "rewriter/explain.hpp"

namespace pw::cli {

/// { "rule", "matches", "applied": [ { "rule", "pass", "step", … } ],
///   "near_misses": [ { "code", "rule", "at", "message", "taken_by", … } ] }
std::string explanation_to_json(const Explanation& found, const std::string& rule);

}  // namespace pw::cli
