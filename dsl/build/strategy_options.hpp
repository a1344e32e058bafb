// The options of a strategy: `fuel`, `when`, `ensures`, and those that only some kinds take.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "dsl/program.hpp"

namespace pw {

/// What `best of … by` and `saturate … cost` may name; the rewriter counts them
/// (rewriter/egraph/cost.hpp).
enum class Cost : std::uint8_t {
  nodes,  ///< live nodes
  ops,    ///< nodes that compute: views and constants left out
  bytes,  ///< what those read and write, at the representative sizes
};
/// In the order of Cost.
inline constexpr std::array<std::string_view, 3> kCostNames{"nodes", "ops", "bytes"};

/// The word a strategy begins with: "greedy", "best of".
[[nodiscard]] std::string_view word(ast::Strategy::Kind kind);
/// Of one strategy, not of its parts: each option has a place, its numbers and names are sound, and
/// what must be there is.
void check_strategy_options(const Program& program, const RuleSet& set, const ast::Strategy& tree,
                            Diagnostics& out);
/// `for tokens in ranges(256, 2048)`: of tokens, and rising.
void check_ranges(const ast::Pipeline& pipeline, Diagnostics& out);

}  // namespace pw
