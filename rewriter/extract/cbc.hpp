// The same problem as an integer program for COIN-OR's CBC, where it was there when this was built:
// a second opinion, whose time is limited and not its steps.
#pragma once

#include "rewriter/extract/solve.hpp"

namespace pw::extract {

[[nodiscard]] bool has_cbc();
/// The answer of solve() with few steps is where it starts. Nothing where a root cannot be derived,
/// or without CBC.
std::optional<Answer> solve_with_cbc(const Problem& problem, double seconds);

}  // namespace pw::extract
