#include "graph/infer/window_shapes.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/try.hpp"

namespace pw {
namespace {

using Out = Result<std::optional<Shape>>;
constexpr std::size_t kMostAxes = 3;
constexpr std::int64_t kMostOfWindow = std::int64_t{1} << 31;

tl::unexpected<Diagnostics> no_window(const ShapeCall& call, std::string message) {
  return fail(call.span, "PW0310", std::move(message));
}

Result<Shape> list_at(const ShapeCall& call, std::size_t i) {
  if (i < call.arguments.size())
    if (const auto* s = std::get_if<Shape>(&call.arguments[i])) return *s;
  return no_window(call, fmt::format("shape function: argument {} is not a list of dims", i + 1));
}

Result<std::int64_t> number_at(const ShapeCall& call, std::size_t i) {
  if (i < call.arguments.size()) {
    if (const auto* v = std::get_if<std::int64_t>(&call.arguments[i])) return *v;
    if (const auto* b = std::get_if<bool>(&call.arguments[i])) return *b ? 1 : 0;
  }
  return no_window(call, fmt::format("shape function: argument {} is not an integer", i + 1));
}

/// Returns a list of numbers, one for each axis, starting at `least`.
Result<std::vector<std::int64_t>> numbers_at(const ShapeCall& call, std::size_t i, std::size_t axes,
                                             std::int64_t least, const char* what) {
  Shape list = PW_TRY(list_at(call, i));
  std::vector<std::int64_t> out;
  for (DimId d : list) {
    const auto v = call.context.dims.value(d);
    if (!v || *v < least || *v >= kMostOfWindow)
      return no_window(call, fmt::format("{} of {} axes is {}, but must be at least {}", what, axes,
                                         call.context.types.print(list), least));
    out.push_back(*v);
  }
  if (out.size() == axes) return out;
  return no_window(call, fmt::format("{} has {} numbers for {} axes", what, out.size(), axes));
}

struct Steps {
  std::vector<std::int64_t> stride, padding, dilation;
};
/// Returns the lists from argument `first` on, the third only if `dilated`.
Result<Steps> steps_at(const ShapeCall& call, std::size_t first, std::size_t axes,
                       bool dilated = true) {
  auto stride = numbers_at(call, first, axes, 1, "stride"),
       padding = numbers_at(call, first + 1, axes, 0, "padding");
  if (!stride) return forward(stride);
  if (!padding) return forward(padding);
  if (!dilated) return Steps{*stride, *padding, std::vector<std::int64_t>(axes, 1)};
  auto dilation = PW_TRY(numbers_at(call, first + 2, axes, 1, "dilation"));
  return Steps{*stride, *padding, dilation};
}

/// Returns the number of window positions on an axis; with `ceil` the window may extend beyond the
/// end.
Result<DimId> places(const ShapeCall& call, DimId extent, DimId kernel, const Steps& steps,
                     std::size_t axis, bool ceil) {
  Dims& dims = call.context.dims;
  const auto number = [&](std::int64_t v) { return dims.constant(v); };
  const std::int64_t stride = steps.stride[axis], padding = steps.padding[axis];
  const DimId reach = dims.mul(number(steps.dilation[axis]), dims.sub(kernel, number(1)));
  const DimId room = dims.sub(dims.add(extent, number(2 * padding - 1)), reach);
  const DimId last = dims.add(room, number(ceil ? stride - 1 : 0));
  const DimId steps_taken = last.valid() ? dims.div(last, number(stride)) : DimId();
  DimId out = steps_taken.valid() ? dims.add(steps_taken, number(1)) : DimId();
  if (!out.valid()) return no_window(call, "the extents of a window are out of range");
  const auto count = dims.value(out), size = dims.value(extent);
  if ((!ceil && dims.value(room) && *dims.value(room) < 0) || (count && *count < 1))
    return no_window(
        call, fmt::format("a window of {} with dilation {} is larger than {} padded by {}",
                          dims.print(kernel), steps.dilation[axis], dims.print(extent), padding));
  if (!ceil) return out;
  if (!count || !size)
    return no_window(call,
                     "positions beyond the end are supported only for numbers, not for symbols");
  // A window begins inside of the input, or of the padding before it.
  return (*count - 1) * stride >= *size + padding ? number(*count - 1) : out;
}

/// Checks the rank of a weight: two axes, then the kernel's.
Status check_rank(const ShapeCall& call, const Shape& x, std::size_t rank) {
  if (x.size() == rank && rank > 2 && rank <= 2 + kMostAxes) return {};
  return no_window(
      call, fmt::format("a convolution of 1 to {} axes does not support ranks {} and {}", kMostAxes,
                        x.size(), rank));
}

/// Checks that x has the channels that the weight and groups require; returns the shape of the
/// result.
Result<Shape> convolved_shape(const ShapeCall& call, const Shape& x, const Shape& w,
                              std::size_t steps_from) {
  Dims& dims = call.context.dims;
  PW_TRY(check_rank(call, x, w.size()));
  Steps steps = PW_TRY(steps_at(call, steps_from, x.size() - 2));
  Result<std::int64_t> groups = number_at(call, steps_from + 3);
  if (!groups) return forward(groups);
  const auto outputs = dims.value(w[0]);
  if (*groups < 1 || (outputs && *outputs % *groups != 0) ||
      !call.same(x[1], dims.mul(w[1], dims.constant(*groups))))
    return no_window(call, fmt::format("{} channels in {} groups do not fit a weight of {}",
                                       dims.print(x[1]), *groups, call.context.types.print(w)));
  Shape out = {x[0], w[0]};
  for (std::size_t i = 2; i < x.size(); ++i) {
    DimId places_here = PW_TRY(places(call, x[i], w[i], steps, i - 2, false));
    out.push_back(places_here);
  }
  return out;
}

Status check_same(const ShapeCall& call, const Shape& shape, const Shape& wanted) {
  bool same = shape.size() == wanted.size();
  for (std::size_t i = 0; same && i < shape.size(); ++i) same = call.same(shape[i], wanted[i]);
  if (same) return {};
  return no_window(call,
                   fmt::format("the convolution makes {}, not {}", call.context.types.print(shape),
                               call.context.types.print(wanted)));
}

/// Scales an extent. A symbol can only be multiplied by whole numbers.
Result<DimId> scaled(const ShapeCall& call, DimId extent, double scale) {
  Dims& dims = call.context.dims;
  const auto number = dims.value(extent);
  const bool whole = scale == std::floor(scale);
  if (!(scale > 0 && scale < 1e6) || (!number && !whole))
    return no_window(call, fmt::format("an extent of {} times {}", dims.print(extent), scale));
  DimId out = whole ? dims.mul(extent, dims.constant(static_cast<std::int64_t>(scale)))
                    : dims.constant(static_cast<std::int64_t>(
                          std::floor(static_cast<double>(*number) * scale)));
  if (!out.valid() || (dims.value(out) && *dims.value(out) < 1))
    return no_window(call, fmt::format("an extent of {} times {}", dims.print(extent), scale));
  return out;
}

/// Checks a third operand, if there is one.
Status check_bias(const ShapeCall& call, DimId channels) {
  if (call.operands.size() < 3 || !call.operands[2].valid() || call.operands[2] == Types::unknown())
    return {};
  const Shape& bias = call.context.types[call.operands[2]].shape;
  if (bias.size() == 1 && call.same(bias[0], channels)) return {};
  return no_window(call, fmt::format("a bias of {} for {} channels", call.context.types.print(bias),
                                     call.context.dims.print(channels)));
}

Shape with_last(const Shape& x, const Shape& last) {
  Shape out(x.begin(), x.end() - static_cast<std::ptrdiff_t>(last.size()));
  out.insert(out.end(), last.begin(), last.end());
  return out;
}

}  // namespace

Out convolved(const ShapeCall& call) {
  Shape x = PW_TRY(list_at(call, 0));
  Shape w = PW_TRY(list_at(call, 1));
  Shape out = PW_TRY(convolved_shape(call, x, w, 2));
  return std::optional(out);
}

Out unconvolved(const ShapeCall& call) {
  Shape y = PW_TRY(list_at(call, 0));
  Shape w = PW_TRY(list_at(call, 1));
  Result<Shape> size = list_at(call, 2);
  if (!size) return forward(size);
  PW_TRY(check_rank(call, y, w.size()));
  std::int64_t groups = PW_TRY(number_at(call, 6));
  if (size->size() + 2 != y.size())
    return no_window(call, "the size must have an extent for each axis");
  Dims& dims = call.context.dims;
  Shape x = {y[0], dims.mul(w[1], dims.constant(groups))};
  x.insert(x.end(), size->begin(), size->end());
  Shape again = PW_TRY(convolved_shape(call, x, w, 3));
  PW_TRY(check_same(call, again, y));
  PW_TRY(check_bias(call, x[1]));
  return std::optional(x);
}

Out convolving(const ShapeCall& call) {
  Shape y = PW_TRY(list_at(call, 0));
  Shape x = PW_TRY(list_at(call, 1));
  Shape kernel = PW_TRY(list_at(call, 2));
  PW_TRY(check_rank(call, y, x.size()));
  std::int64_t groups = PW_TRY(number_at(call, 6));
  if (groups < 1) return no_window(call, "the number of groups must be at least 1");
  Dims& dims = call.context.dims;
  Shape w = {y[1], dims.div(x[1], dims.constant(groups))};
  if (!w[1].valid()) return no_window(call, "the channels are out of range");
  w.insert(w.end(), kernel.begin(), kernel.end());
  Shape again = PW_TRY(convolved_shape(call, x, w, 3));
  PW_TRY(check_same(call, again, y));
  return std::optional(w);
}

Out pooled(const ShapeCall& call) {
  Shape x = PW_TRY(list_at(call, 0));
  Result<Shape> kernel = list_at(call, 1);
  if (!kernel) return forward(kernel);
  const std::size_t axes = kernel->size();
  if (axes < 1 || axes > kMostAxes || axes > x.size())
    return no_window(call,
                     fmt::format("a window of {} axes over a tensor of rank {}", axes, x.size()));
  auto sizes = PW_TRY(numbers_at(call, 1, axes, 1, "kernel"));
  const bool dilated = call.arguments.size() > 5;
  Result<Steps> steps = steps_at(call, 2, axes, dilated);
  Result<std::int64_t> ceil = number_at(call, dilated ? 5 : 4);
  if (!steps) return forward(steps);
  if (!ceil) return forward(ceil);
  Shape last;
  for (std::size_t i = 0; i < axes; ++i) {
    if (steps->padding[i] > sizes[i] / 2)
      return no_window(call, fmt::format("padding {} is more than half of a window of {}",
                                         steps->padding[i], sizes[i]));
    DimId out = PW_TRY(places(call, x[x.size() - axes + i], (*kernel)[i], *steps, i, *ceil != 0));
    last.push_back(out);
  }
  return std::optional(with_last(x, last));
}

Out unpooled(const ShapeCall& call) {
  Shape y = PW_TRY(list_at(call, 0));
  Shape size = PW_TRY(list_at(call, 1));
  Result<Shape> kernel = list_at(call, 2);
  if (!kernel) return forward(kernel);
  Out out = resized(call);
  if (!out) return out;
  const std::size_t axes = size.size();
  PW_TRY(numbers_at(call, 2, axes, 1, "kernel"));
  Steps steps = PW_TRY(steps_at(call, 3, axes, false));
  for (std::size_t i = 0; i < axes; ++i) {
    const DimId given = y[y.size() - axes + i];
    DimId whole = PW_TRY(places(call, size[i], (*kernel)[i], steps, i, false));
    if (call.same(whole, given)) continue;
    Result<DimId> beyond = places(call, size[i], (*kernel)[i], steps, i, true);
    if (beyond && call.same(*beyond, given)) continue;
    return no_window(call,
                     fmt::format("a window has {} places, not {}", call.context.dims.print(whole),
                                 call.context.dims.print(given)));
  }
  return out;
}

Out resized(const ShapeCall& call) {
  Shape x = PW_TRY(list_at(call, 0));
  Shape size = PW_TRY(list_at(call, 1));
  if (size.empty() || size.size() > kMostAxes || size.size() > x.size())
    return no_window(call,
                     fmt::format("{} extents for a tensor of rank {}", size.size(), x.size()));
  for (DimId d : size)
    if (const auto v = call.context.dims.value(d); v && *v < 1)
      return no_window(call, fmt::format("an extent of {}", *v));
  return std::optional(with_last(x, size));
}

Out upsampled(const ShapeCall& call) {
  Shape x = PW_TRY(list_at(call, 0));
  Result<Shape> size = list_at(call, 1);
  if (!size) return forward(size);
  const auto* scales =
      call.arguments.size() > 2 ? std::get_if<std::vector<double>>(&call.arguments[2]) : nullptr;
  if (scales != nullptr && !scales->empty() && !size->empty() && scales->size() != size->size())
    return no_window(call, fmt::format("{} scales for {} axes", scales->size(), size->size()));
  if (!size->empty()) return resized(call);
  if (scales == nullptr || scales->empty() || scales->size() > std::min(kMostAxes, x.size()))
    return no_window(call, "neither a size nor a scale for one to three axes");
  const std::size_t first = x.size() - scales->size();
  for (std::size_t i = 0; i < scales->size(); ++i) {
    DimId extent = PW_TRY(scaled(call, x[first + i], (*scales)[i]));
    x[first + i] = extent;
  }
  return std::optional(x);
}

}  // namespace pw
