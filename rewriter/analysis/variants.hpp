// The rules of a pass as written, each with the variants that can be analysed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rewriter/analysis/checks.hpp"

namespace pw {

using Variants = std::map<std::string, std::vector<RuleId>>;  ///< by written name; small ones first
/// Returns the variants. Rules with lists or `unless` are noted in the report and omitted.
Variants variants_of(Analysis& analysis, const RulePass& pass);
/// Returns "family[row]" for one of its variants.
std::string row_name(const Rule& rule);

}  // namespace pw
