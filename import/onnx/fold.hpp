// Calculates while importing what a model says of shapes: whole numbers, some of them symbolic
// dims.
#pragma once

#include <optional>

#include "import/onnx/call.hpp"

namespace pw::onnx {

/// The result of a node whose inputs are known numbers; nothing where it is no such node.
[[nodiscard]] std::optional<KnownNumbers> fold(OnnxCall& call);

}  // namespace pw::onnx
