// Rewriting again after an edit, beside rewriting from scratch.
#pragma once

#include <string>

#include "bench/measure.hpp"

namespace pw::bench {

/// A table, and its limits among the promises. Ends the program where a result differs from that of
/// a run from scratch. `rules`: of the file that bench/rewrite.cpp has too.
[[nodiscard]] std::string incremental_report(const std::string& rules, Promises& promises);

}  // namespace pw::bench
