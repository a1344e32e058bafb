// The table from ONNX ops to functions that lower them to calls, for ops beyond the expressions of
// rules/import/onnx.pwr. A row holds from a version of the opset on, until the next row of the op.
#pragma once

#include <span>
#include <string_view>

#include "import/onnx/call.hpp"

namespace pw::onnx {

struct Lowering {
  std::string_view op;
  std::int64_t since;
  /// Returns the node's results, in order; trailing results that the model does not name may be
  /// omitted. Throws GiveUp.
  ModelValues (*lower)(OnnxCall& call);
};

// By folder of the subject; in lower_NAME.cpp.
[[nodiscard]] std::span<const Lowering> layout_lowerings();
[[nodiscard]] std::span<const Lowering> index_lowerings();
[[nodiscard]] std::span<const Lowering> arithmetic_lowerings();
[[nodiscard]] std::span<const Lowering> reduction_lowerings();
[[nodiscard]] std::span<const Lowering> product_lowerings();
[[nodiscard]] std::span<const Lowering> window_lowerings();
[[nodiscard]] std::span<const Lowering> norm_lowerings();
[[nodiscard]] std::span<const Lowering> resize_lowerings();
[[nodiscard]] std::span<const Lowering> signal_lowerings();
[[nodiscard]] std::span<const Lowering> loss_lowerings();
[[nodiscard]] std::span<const Lowering> ngram_lowerings();

/// Returns the row that holds at a version, or null.
[[nodiscard]] const Lowering* find_lowering(std::string_view op, std::int64_t version);

}  // namespace pw::onnx
