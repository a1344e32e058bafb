#include "backends/windows.hpp"

#include <algorithm>
#include <cmath>

namespace pw {
namespace {

/// Returns a list attribute of the call, aligned to the last of three axes.
Axes list_of(const Call& call, std::string_view name, std::int64_t otherwise) {
  const Extents given = call.dims(name);
  Axes out{otherwise, otherwise, otherwise};
  std::copy(given.begin(), given.end(), out.end() - static_cast<std::ptrdiff_t>(given.size()));
  return out;
}

/// Returns the factor from positions in the result to positions in the source.
template <class T>
T scale_of(std::int64_t in, std::int64_t out, bool align, double given) {
  if (align) return out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T(0);
  if (given > 0) return static_cast<T>(1 / given);
  return static_cast<T>(in) / static_cast<T>(out);
}

/// An index of nearest is always computed in f32.
AxisSample nearest_sample(std::int64_t in, std::int64_t out, double given, std::int64_t i) {
  const float at = static_cast<float>(i) * scale_of<float>(in, out, false, given);
  // Compared as numbers: a place may be beyond all integers.
  const std::int64_t index =
      at < static_cast<float>(in - 1) ? static_cast<std::int64_t>(at) : in - 1;
  return {index, index, 0};
}

template <class T>
AxisSample linear_sample(std::int64_t in, std::int64_t out, bool align, double given,
                         std::int64_t i) {
  const T scale = scale_of<T>(in, out, align, given), place = static_cast<T>(i);
  T at = align ? scale * place : scale * (place + T(0.5)) - T(0.5);
  if (!align && at < 0) at = 0;
  const std::int64_t first = at < static_cast<T>(in - 1) ? static_cast<std::int64_t>(at) : in - 1;
  const T share = std::clamp(at - static_cast<T>(first), T(0), T(1));
  return {first, std::min(first + 1, in - 1), static_cast<double>(share)};
}

std::vector<double> scales_of(const Call& call) {
  const Attribute* given = call.graph.attribute(call.node, "scales");
  const auto* list = given == nullptr ? nullptr : std::get_if<std::vector<double>>(given);
  return list == nullptr ? std::vector<double>() : *list;
}

}  // namespace

Window window_of(const Call& call, const Extents& kernel, const Extents& in, const Extents& out) {
  const std::size_t axes = kernel.size();
  return {last_axes(kernel, axes),      list_of(call, "stride", 1), list_of(call, "padding", 0),
          list_of(call, "dilation", 1), last_axes(in, axes),        last_axes(out, axes)};
}

Convolution convolution_of(const Call& call, const Extents& x, const Extents& w, const Extents& y) {
  Convolution out;
  out.window = window_of(call, Extents(w.begin() + 2, w.end()), x, y);
  out.batch = x[0];
  out.groups = call.integer("groups", 1);
  out.channels = w[1];
  out.outputs = w[0] / out.groups;
  return out;
}

Means means_of(const Call& call, const Extents& in, const Extents& out) {
  const Window window = window_of(call, call.dims("kernel"), in, out);
  const bool padded = call.integer("include_padding", 1) != 0;
  Means means{{}, call.integer("divisor", 0), window.in, window.out};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    for (std::int64_t i = 0; i < window.out[axis]; ++i) {
      const std::int64_t from = window.source(axis, i, 0);
      const std::int64_t to =
          std::min(from + window.kernel[axis], window.in[axis] + window.padding[axis]);
      const std::int64_t begin = std::max<std::int64_t>(from, 0),
                         end = std::min(to, window.in[axis]);
      means.axes[axis].push_back({begin, end, padded ? to - from : end - begin});
    }
  }
  return means;
}

Means adaptive_means_of(std::size_t axes, const Extents& in, const Extents& out) {
  Means means{{}, 0, last_axes(in, axes), last_axes(out, axes)};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t from = means.in[axis], to = means.out[axis];
    for (std::int64_t i = 0; i < to; ++i) {
      const std::int64_t begin = i * from / to;
      const std::int64_t end = ((i + 1) * from + to - 1) / to;
      means.axes[axis].push_back({begin, end, end - begin});
    }
  }
  return means;
}

std::size_t sampled_axes(const Call& call) {
  return std::max(call.dims("size").size(), scales_of(call).size());
}

std::array<std::vector<AxisSample>, 3> samples_of(const Call& call, const Extents& in,
                                                  const Extents& out, bool linear, bool wide) {
  const std::size_t axes = sampled_axes(call);
  const Axes from = last_axes(in, axes), to = last_axes(out, axes);
  const std::vector<double> scales = scales_of(call);
  const bool align = call.integer("align", 0) != 0;
  std::array<std::vector<AxisSample>, 3> samples;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double given =
        axis + scales.size() >= 3 && scales.size() == axes ? scales[axis + scales.size() - 3] : 0;
    for (std::int64_t i = 0; i < to[axis]; ++i)
      samples[axis].push_back(!linear ? nearest_sample(from[axis], to[axis], given, i)
                              : wide  ? linear_sample<double>(from[axis], to[axis], align, given, i)
                                     : linear_sample<float>(from[axis], to[axis], align, given, i));
  }
  return samples;
}

}  // namespace pw
