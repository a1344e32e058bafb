// Wrapper around the Graphviz library: DOT text in, picture out. Nothing else includes its headers.
#pragma once

#include <string>

#include "base/diagnostic.hpp"

namespace pw::viz {

inline constexpr const char* kTooSlow = "PW0904";  ///< the code of a missed deadline

/// Renders a picture. `format`: svg, png, or pdf; `engine`: dot, or nop2 for text with positions.
/// The layout runs in a child process with a deadline, because Graphviz cannot be interrupted,
/// takes minutes on large graphs, and exits on some errors. The library is loaded on first use;
/// fails with PW0907 without it.
Result<std::string> lay_out(const std::string& dot, const std::string& format, int deadline_ms,
                            const char* engine = "dot");

/// Returns the version of the Graphviz in use, or the reason why it is missing.
[[nodiscard]] std::string graphviz_state();

}  // namespace pw::viz
