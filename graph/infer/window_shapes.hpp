// Shape functions of what moves a window over the last axes: convolutions, their gradients, pools,
// and other sizes of them. Their signatures stand in rules/ops/convolution.pwr and windows.pwr.
#pragma once

#include "graph/infer/shape_functions.hpp"

namespace pw {

/// (*x, *w, stride, padding, dilation, groups): a convolution of x by w, both with two axes before
/// the spatial ones. PW0310 where channels do not fit, or a kernel is larger than its input.
Result<std::optional<Shape>> convolved(const ShapeCall& call);
/// (*y, *w, size, stride, padding, dilation, groups): what of that size is convolved to y.
Result<std::optional<Shape>> unconvolved(const ShapeCall& call);
/// (*y, *x, kernel, stride, padding, dilation, groups): the weight that convolves x to y.
Result<std::optional<Shape>> convolving(const ShapeCall& call);
/// (*x, kernel, stride, padding, dilation, ceil), or without dilation: a window's places on the
/// last axes.
Result<std::optional<Shape>> pooled(const ShapeCall& call);
/// (*y, size, kernel, stride, padding): what of that size a window has y's places on, up to some
/// that are beyond the end or not.
Result<std::optional<Shape>> unpooled(const ShapeCall& call);
/// (*x, size): the last axes of other extents.
Result<std::optional<Shape>> resized(const ShapeCall& call);
/// (*x, size, scales): the same, or where size is empty the largest whole numbers below extents
/// times scales.
Result<std::optional<Shape>> upsampled(const ShapeCall& call);

}  // namespace pw
