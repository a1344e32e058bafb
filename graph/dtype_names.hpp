// Names of dtypes in other systems, for messages that suggest ours.
#pragma once

#include <string>
#include <string_view>

#include "graph/dtype.hpp"

namespace pw {

/// The element type that the name means elsewhere: bf16 of "bfloat16", f16 of "half"; nothing if it
/// means none of them, or is the name of one here.
[[nodiscard]] std::optional<DType> dtype_meant(std::string_view name);
/// Whether it can only be meant as an element type, though there is none of that name: "bfloat16",
/// "i16".
[[nodiscard]] bool looks_like_dtype(std::string_view name);
/// "did you mean `bf16`?", or the names that there are.
[[nodiscard]] std::string dtype_hint(std::string_view name);

}  // namespace pw
