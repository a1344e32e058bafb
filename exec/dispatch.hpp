// Padding and slicing of a step's tensors, and the plan's decisions for the step, shared by every
// engine that runs steps through a plan.
#pragma once

#include "exec/runner.hpp"

namespace pw {

inline constexpr int kPoison = 0xff;  ///< fill byte: NaN in every floating dtype

/// Returns the tensor itself if it has these extents, else a larger one that begins with it. The
/// rows after it hold zeros or, if poisoned, NaN in floating dtypes.
[[nodiscard]] Tensor padded(const Tensor& tensor, const Extents& extents, bool poison);
/// Returns the leading part of a padded tensor.
[[nodiscard]] Tensor cut(const TensorView& padded, const Extents& extents);

/// Returns the plan's bounds and the token count as symbols.
[[nodiscard]] Symbols symbols_at(const Plan& plan, std::int64_t tokens, Symbols symbols = {});
/// Fails with PW1207 if the graph's facts exclude this token count.
Status check_declared(const Graph& graph, std::int64_t tokens);
/// Fails with PW1210 if the imported program refuses these sizes. Skips conditions on a symbol
/// without a number: nothing in the graph that runs has that size.
Status check_conditions(const Graph& graph, Symbols sizes);
[[nodiscard]] StepShape shape_of(const Step& step);
/// Selects how a step runs, and why. Fails with PW1207 if the step is empty, exceeds the plan's
/// maximum or options.rows, or would run with a row count that the graph's facts exclude: rules
/// were proved under these facts.
Result<StepReport> dispatched(const Plan& plan, const Graph& source, const Dispatcher& dispatcher,
                              const Step& step, const RunOptions& options);

}  // namespace pw
