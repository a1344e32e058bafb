// Products with a constant matrix along one axis, used for interpolation and transforms to
// frequencies.
#pragma once

#include "import/onnx/call.hpp"

namespace pw::onnx {

/// Returns x with one axis replaced by its products with the rows of a matrix, which has as many
/// columns as the axis has elements.
fx::Value times_matrix(OnnxCall& c, const fx::Value& x, std::size_t axis, std::int64_t rows,
                       const std::vector<double>& matrix);

}  // namespace pw::onnx
