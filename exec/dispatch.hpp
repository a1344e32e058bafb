// Padding and cutting of a step's tensors, and the plan's decisions for it: the same for every
// engine that runs steps through a plan.
#pragma once

#include "exec/runner.hpp"

namespace pw {

inline constexpr int kPoison = 0xff;  ///< every byte: NaN in every floating type

/// The tensor itself where it has these extents, else a larger one that begins with it; rows behind
/// hold zeros, or, poisoned, NaN in floating types.
[[nodiscard]] Tensor padded(const Tensor& tensor, const Extents& extents, bool poison);
/// The leading part of a padded tensor.
[[nodiscard]] Tensor cut(const TensorView& padded, const Extents& extents);

/// The plan's bounds, and the tokens.
[[nodiscard]] Symbols symbols_at(const Plan& plan, std::int64_t tokens, Symbols symbols = {});
/// PW1207 where the facts of the graph's tokens symbol have no step of so many tokens: fewer than
/// its minimum, or more than its maximum.
Status check_declared(const Graph& graph, std::int64_t tokens);
[[nodiscard]] StepShape shape_of(const Step& step);
/// How a step runs, and why. PW1207 where it has more tokens than the plan is made for, or none, or
/// more than it is to have rows, or would run with rows that the graph's facts do not allow: rules
/// were proved by them.
Result<StepReport> dispatched(const Plan& plan, const Graph& source, const Dispatcher& dispatcher,
                              const Step& step, const RunOptions& options);

}  // namespace pw
