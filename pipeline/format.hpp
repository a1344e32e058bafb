// Rule files in the one canonical layout.
#pragma once

#include <string>

#include "graph/context.hpp"

namespace pw {

struct FormattedRules {
  std::string text;
  bool changed = false;  ///< it was laid out otherwise
};
/// `name` stands in messages. Comments are kept.
Result<FormattedRules> format_rules(const ContextPtr& context, const std::string& name,
                                    const std::string& text);

}  // namespace pw
