// What an editor can do about a diagnostic: what the diagnostic itself says to write.
#pragma once

#include <vector>

#include "lsp/checks.hpp"
#include "lsp/view.hpp"

namespace pw::cli {

/// `found` are of the text as it is.
[[nodiscard]] std::vector<OfferedAction> offered_actions(const DocumentView& view,
                                                         const std::vector<FoundDiagnostic>& found,
                                                         std::uint32_t begin, std::uint32_t end);

}  // namespace pw::cli
