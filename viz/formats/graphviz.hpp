// Graphviz in this program: DOT text in, picture out. The only place that knows its library.
#pragma once

#include <string>

#include "base/diagnostic.hpp"

namespace pw::viz {

inline constexpr const char* kTooSlow = "PW0904";  ///< the code of a missed deadline

/// `format`: svg, png or pdf; `engine`: dot, or nop2 for text that says where everything is. The
/// layout runs in a child process, which is ended at the deadline:
/// Graphviz cannot be interrupted, takes minutes on large graphs, and ends the program on some
/// errors. Graphviz is loaded then; PW0907 where there is none.
Result<std::string> lay_out(const std::string& dot, const std::string& format, int deadline_ms,
                            const char* engine = "dot");

/// The version of Graphviz that pictures are drawn by, or why there is none.
[[nodiscard]] std::string graphviz_state();

}  // namespace pw::viz
