// Code actions for diagnostics: the edits that the diagnostic itself suggests.
#pragma once

#include <vector>

#include "lsp/checks.hpp"
#include "lsp/view.hpp"

namespace pw::cli {

/// Returns the actions; `found` must refer to the current text.
[[nodiscard]] std::vector<OfferedAction> offered_actions(const DocumentView& view,
                                                         const std::vector<FoundDiagnostic>& found,
                                                         std::uint32_t begin, std::uint32_t end);

}  // namespace pw::cli
