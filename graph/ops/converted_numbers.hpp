// Numbers of PyTorch's calls, such as the value of `full` and the bounds of `clamp`, that PyTorch
// converts to the dtype of the result. It raises if a finite number is beyond the dtype's range;
// numbers of other ops, such as `add`, become infinite instead.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "graph/dtype.hpp"

namespace pw {

/// Returns why PyTorch raises for a call of `target`, such as aten.full; empty if it does not.
/// `number` returns an argument by its name in PyTorch's schema; nothing if it is not a number.
[[nodiscard]] std::string number_beyond_range(
    std::string_view target, DType result,
    const std::function<std::optional<double>(std::string_view)>& number);

}  // namespace pw
