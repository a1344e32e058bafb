// Names of dtypes in other systems, for messages that suggest ours.
#pragma once

#include <string>
#include <string_view>

#include "graph/dtype.hpp"

namespace pw {

/// Returns the element type that a foreign name means: bf16 for "bfloat16", f16 for "half". Nothing
/// if there is no equivalent, or if the name is already one of ours.
[[nodiscard]] std::optional<DType> dtype_meant(std::string_view name);
/// Returns true if the name can only mean an element type, although none has that name: "bfloat16",
/// "i16".
[[nodiscard]] bool looks_like_dtype(std::string_view name);
/// Returns "did you mean `bf16`?", or the list of names.
[[nodiscard]] std::string dtype_hint(std::string_view name);

}  // namespace pw
