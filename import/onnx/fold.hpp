// Constant folding of shape calculations during the import: whole numbers, some of them symbolic
// dims.
#pragma once

#include <optional>

#include "import/onnx/call.hpp"

namespace pw::onnx {

/// Returns the result of a node whose inputs are known numbers; nothing for other nodes.
[[nodiscard]] std::optional<KnownNumbers> fold(OnnxCall& call);

}  // namespace pw::onnx
