// Help lines shared by all checks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw {

/// Returns "did you mean `x`?", or `otherwise` if nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates,
                         std::string otherwise = {});
/// Returns the same where a dtype is allowed: "did you mean `bf16`?" for `bfloat16`.
std::string did_you_mean_name(std::string_view word, const std::vector<std::string>& candidates,
                              std::string otherwise = {});
/// Returns the texts in backquotes in a message, in order: names, and code to write.
std::vector<std::string> ticked(std::string_view message);
/// Returns `x` of a help by did_you_mean(); empty for any other.
std::string suggested_name(std::string_view help);
/// Returns `text` in backquotes.
std::string in_ticks(std::string_view text);
/// Moves the diagnostics of `from` to the end of `to`.
void append(Diagnostics& to, Diagnostics from);

}  // namespace pw
