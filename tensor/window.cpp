#include "tensor/window.hpp"

#include <algorithm>

namespace pw {

std::pair<std::int64_t, std::int64_t> Window::inside(std::size_t axis, std::int64_t tap) const {
  const std::int64_t at = source(axis, 0, tap), step = stride[axis];
  const std::int64_t first = at >= 0 ? 0 : (-at + step - 1) / step;
  const std::int64_t last = at >= in[axis] ? 0 : (in[axis] - at + step - 1) / step;
  return {std::min(first, out[axis]), std::clamp(last, std::min(first, out[axis]), out[axis])};
}

bool Window::has_padding_alone() const {
  for (std::size_t axis = 0; axis < 3; ++axis)
    for (std::int64_t place = 0; place < out[axis]; ++place) {
      bool any = false;
      for (std::int64_t tap = 0; tap < kernel[axis] && !any; ++tap) {
        const std::int64_t at = source(axis, place, tap);
        any = at >= 0 && at < in[axis];
      }
      if (!any) return true;
    }
  return false;
}

Axes last_axes(const Extents& extents, std::size_t axes) {
  Axes out{1, 1, 1};
  std::copy(extents.end() - static_cast<std::ptrdiff_t>(axes), extents.end(),
            out.end() - static_cast<std::ptrdiff_t>(axes));
  return out;
}

}  // namespace pw
