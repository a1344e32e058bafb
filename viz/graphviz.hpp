// Graphviz in this program: DOT text in, picture out. The only place that knows its library.
#pragma once

#include <string>

#include "base/diagnostic.hpp"

namespace pw::viz {

/// `format`: svg, png or pdf. The layout runs in a child process, which is ended at the deadline:
/// Graphviz cannot be interrupted, takes minutes on large graphs, and ends the program on some
/// errors.
Result<std::string> lay_out(const std::string& dot, const std::string& format, int deadline_ms);

}  // namespace pw::viz
