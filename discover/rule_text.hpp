// A pair of forms as a rule of the language, and a graph that it matches as a test of it.
#pragma once

#include <optional>
#include <string>

#include "discover/sizes.hpp"

namespace pw::discover {

struct TextOptions {
  bool any_rank = false;  ///< all inputs are `T[*b]`
  bool any_dtype = true;  ///< floats of 16 bits and more are T; else each dtype is as it is
  bool captured = true;   ///< attributes that both sides have are variables
};

/// Nothing where the left side does not say all that the right side needs.
[[nodiscard]] std::optional<std::string> rule_text(Context& context, const General& general,
                                                   const std::string& name,
                                                   const TextOptions& options);
/// `mm_add_to_add_mm_mm`.
[[nodiscard]] std::string rule_name(const Context& context, const Pair& pair);
/// The left side at these sizes; applied once if the rule could match what it makes.
[[nodiscard]] std::optional<std::string> test_text(Context& context, const General& general,
                                                   const std::string& name,
                                                   const std::vector<std::int64_t>& sizes,
                                                   const std::string& tolerance, bool once);

}  // namespace pw::discover
