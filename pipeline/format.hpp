// Formats rule files in the canonical layout.
#pragma once

#include <string>

#include "graph/context.hpp"

namespace pw {

struct FormattedRules {
  std::string text;
  bool changed = false;  ///< the input was not canonical
};
/// Formats a text and keeps its comments. `name` is used in messages.
Result<FormattedRules> format_rules(const ContextPtr& context, const std::string& name,
                                    const std::string& text);

}  // namespace pw
