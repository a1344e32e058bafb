// Paths in what is passed on to others: reports and pages.
#pragma once

#include <string>
#include <string_view>

namespace pw {

/// A relative path as it is; of an absolute one the last part, so that nothing is said of the
/// machine's folders.
[[nodiscard]] std::string shown_path(std::string_view path);

}  // namespace pw
