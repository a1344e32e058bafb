// A pattern without a right side, for `pwr match`.
#pragma once

#include "dsl/dsl.hpp"

namespace pw {

/// The rules of `paths`, whose shared patterns may be used, followed by the variants of the
/// pattern. These are rules called `query` (`query#1` …) that replace nothing: no value in them is
/// consumed. `text` is the left side of a rule: statements and clauses.
struct Query {
  RuleSet rules;
  std::vector<RuleId> variants;
};
Result<Query> load_query(const ContextPtr& context, const std::vector<std::string>& paths,
                         std::string_view text);

}  // namespace pw
