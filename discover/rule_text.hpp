// Writes a pair of forms as a rule, and a matching graph as its test.
#pragma once

#include <optional>
#include <string>

#include "discover/sizes.hpp"

namespace pw::discover {

struct TextOptions {
  bool any_rank = false;  ///< all inputs are `T[*b]`
  bool any_dtype = true;  ///< floats of at least 16 bits become T; otherwise dtypes are fixed
  bool captured = true;   ///< attributes common to both sides become variables
};

/// Returns the rule's text; nothing if the left side does not determine all that the right side
/// needs.
[[nodiscard]] std::optional<std::string> rule_text(Context& context, const General& general,
                                                   const std::string& name,
                                                   const TextOptions& options);
/// Returns a name such as `mm_add_to_add_mm_mm`.
[[nodiscard]] std::string rule_name(const Context& context, const Pair& pair);
/// Returns a test of the left side at these sizes. The rule is applied once if it could match its
/// own result.
[[nodiscard]] std::optional<std::string> test_text(Context& context, const General& general,
                                                   const std::string& name,
                                                   const std::vector<std::int64_t>& sizes,
                                                   const std::string& tolerance, bool once);

}  // namespace pw::discover
