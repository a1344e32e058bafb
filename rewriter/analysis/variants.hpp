// The rules of a pass as they were written, each with the variants that can be analysed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rewriter/analysis/checks.hpp"

namespace pw {

using Variants = std::map<std::string, std::vector<RuleId>>;  ///< by written name; small ones first
/// Rules with lists or `unless` are noted in the report and left out.
Variants variants_of(Analysis& analysis, const RulePass& pass);
/// "family[row]" of one of its variants.
std::string row_name(const Rule& rule);

}  // namespace pw
