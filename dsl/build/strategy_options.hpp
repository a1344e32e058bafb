// The options of a strategy: `fuel`, `when`, `ensures`, and those that only some kinds take.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "dsl/program.hpp"

namespace pw {

/// Costs that `best of … by` and `saturate … cost` may name; the rewriter computes them
/// (rewriter/egraph/cost.hpp).
enum class Cost : std::uint8_t {
  nodes,  ///< live nodes
  ops,    ///< nodes that compute: without views and constants
  bytes,  ///< what those read and write, at the representative sizes
};
/// Names in the order of Cost.
inline constexpr std::array<std::string_view, 3> kCostNames{"nodes", "ops", "bytes"};

/// Returns the first word of a strategy: "greedy", "best of".
[[nodiscard]] std::string_view word(ast::Strategy::Kind kind);
/// Checks the options of one strategy, without its parts: each is allowed there, its numbers and
/// names are valid, and required ones are present.
void check_strategy_options(const Program& program, const RuleSet& set, const ast::Strategy& tree,
                            Diagnostics& out);
/// Checks `for tokens in ranges(256, 2048)`: over tokens, and rising.
void check_ranges(const ast::Pipeline& pipeline, Diagnostics& out);

}  // namespace pw
