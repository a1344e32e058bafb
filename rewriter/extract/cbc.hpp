// The same problem as an integer program for COIN-OR's CBC, if it was available at build time: a
// second opinion, limited by time instead of steps.
#pragma once

#include "rewriter/extract/solve.hpp"

namespace pw::extract {

[[nodiscard]] bool has_cbc();
/// Solves from the answer of solve() with few steps. Nothing if a root cannot be derived, or
/// without CBC.
std::optional<Answer> solve_with_cbc(const Problem& problem, double seconds);

}  // namespace pw::extract
