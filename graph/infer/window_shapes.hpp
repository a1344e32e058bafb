// Shape functions of ops that move a window over the last axes: convolutions, their gradients,
// pools, and resizing. Their signatures are in rules/ops/convolution.pwr and windows.pwr.
#pragma once

#include "graph/infer/shape_functions.hpp"

namespace pw {

/// Computes (*x, *w, stride, padding, dilation, groups): a convolution of x by w, both with two
/// axes before the spatial ones. PW0310 if channels do not fit, or a kernel is larger than its
/// input.
Result<std::optional<Shape>> convolved(const ShapeCall& call);
/// Computes (*y, *w, size, stride, padding, dilation, groups): the input of that size whose
/// convolution is y.
Result<std::optional<Shape>> unconvolved(const ShapeCall& call);
/// Computes (*y, *x, kernel, stride, padding, dilation, groups): the weight that convolves x to y.
Result<std::optional<Shape>> convolving(const ShapeCall& call);
/// Computes (*x, kernel, stride, padding, dilation, ceil), or without dilation: the window
/// positions on the last axes.
Result<std::optional<Shape>> pooled(const ShapeCall& call);
/// Computes (*y, size, kernel, stride, padding): the input of that size whose window positions have
/// y's shape. Some positions may lie beyond the end.
Result<std::optional<Shape>> unpooled(const ShapeCall& call);
/// Computes (*x, size): the last axes with other extents.
Result<std::optional<Shape>> resized(const ShapeCall& call);
/// Computes (*x, size, scales): the given size, or for an empty size each extent times its scale,
/// rounded down.
Result<std::optional<Shape>> upsampled(const ShapeCall& call);

}  // namespace pw
