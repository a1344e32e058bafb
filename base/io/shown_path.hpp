// Paths for reports and pages that are passed on to others.
#pragma once

#include <string>
#include <string_view>

namespace pw {

/// Returns a relative path unchanged, and only the last part of an absolute one, so that nothing
/// reveals the machine's folders.
[[nodiscard]] std::string shown_path(std::string_view path);

}  // namespace pw
