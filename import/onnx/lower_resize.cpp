// Computes Resize and Upsample axis by axis, as a gather or a product with the matrix of each
// output element's weights.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "import/onnx/axis_product.hpp"
#include "import/onnx/lowering.hpp"
#include "import/onnx/tensors.hpp"

namespace pw::onnx {
namespace {

/// Parameters of one axis.
struct AxisResize {
  std::int64_t from = 0, to = 0;
  double scale = 1;           ///< as given, not the quotient of the sizes
  double begin = 0, end = 1;  ///< of the region, with tf_crop_and_resize
};

struct ResizeForm {
  std::string mode = "nearest", coordinates = "half_pixel", nearest = "round_prefer_floor";
  double cubic = -0.75, extrapolation = 0;
  bool antialias = false, exclude_outside = false;
};

/// Returns the position of an output element on the input's axis.
double source_of(const ResizeForm& form, const AxisResize& a, std::int64_t i) {
  const auto x = static_cast<double>(i), from = static_cast<double>(a.from),
             to = static_cast<double>(a.to);
  if (form.coordinates == "half_pixel") return (x + 0.5) / a.scale - 0.5;
  if (form.coordinates == "asymmetric") return x / a.scale;
  if (form.coordinates == "pytorch_half_pixel") return a.to > 1 ? (x + 0.5) / a.scale - 0.5 : 0;
  if (form.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
  if (form.coordinates == "align_corners")
    return a.to > 1 ? x * (from - 1) / (a.scale * from - 1) : 0;
  if (form.coordinates == "half_pixel_symmetric") {
    const double adjustment = to / (a.scale * from), centre = from / 2;
    return centre * (1 - adjustment) + (x + 0.5) / a.scale - 0.5;
  }
  if (form.coordinates == "tf_crop_and_resize")
    return a.to > 1 ? a.begin * (from - 1) + x * (a.end - a.begin) * (from - 1) / (to - 1)
                    : 0.5 * (a.begin + a.end) * (from - 1);
  throw GiveUp{"coordinates `" + form.coordinates + "`"};
}

std::int64_t nearest_of(const ResizeForm& form, double x) {
  if (form.nearest == "floor") return static_cast<std::int64_t>(std::floor(x));
  if (form.nearest == "ceil") return static_cast<std::int64_t>(std::ceil(x));
  const double below = std::floor(x);
  if (form.nearest == "round_prefer_floor")
    return static_cast<std::int64_t>(x - below <= 0.5 ? below : below + 1);
  if (form.nearest == "round_prefer_ceil")
    return static_cast<std::int64_t>(x - below < 0.5 ? below : below + 1);
  throw GiveUp{"nearest_mode `" + form.nearest + "`"};
}

double cubic_weight(double a, double d) {
  d = std::fabs(d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/// Returns the weight of an input element at a distance; with antialiasing, filters widen if the
/// output is smaller.
double weight_at(const ResizeForm& form, double distance) {
  if (form.mode == "linear") return std::max(0.0, 1 - std::fabs(distance));
  return cubic_weight(form.cubic, distance);
}

/// Returns one row for each output element: weights of all input elements, whose sum is 1. Elements
/// outside count as the nearest inside, or not at all.
std::vector<double> weights_of(const ResizeForm& form, const AxisResize& a) {
  check_made(a.from * a.to);
  std::vector<double> out(static_cast<std::size_t>(a.from * a.to), 0);
  const double shrink = form.antialias ? std::min(a.scale, 1.0) : 1;
  const double reach = (form.mode == "linear" ? 1 : 2) / shrink;
  for (std::int64_t i = 0; i < a.to; ++i) {
    const double x = source_of(form, a, i);
    const auto first = static_cast<std::int64_t>(std::floor(x - reach)),
               last = static_cast<std::int64_t>(std::ceil(x + reach));
    const auto row = out.begin() + i * a.from;
    double sum = 0;
    for (std::int64_t j = first; j <= last; ++j) {
      const double weight = weight_at(form, (static_cast<double>(j) - x) * shrink);
      const std::int64_t at = std::clamp(j, std::int64_t{0}, a.from - 1);
      if (weight == 0 || (at != j && form.exclude_outside)) continue;
      row[at] += weight;
      sum += weight;
    }
    for (std::int64_t j = 0; j < a.from && sum != 0; ++j) row[j] /= sum;
  }
  return out;
}

fx::Value chosen_elements(OnnxCall& c, const fx::Value& x, std::size_t axis, const ResizeForm& form,
                          const AxisResize& a) {
  std::vector<std::int64_t> at;
  for (std::int64_t i = 0; i < a.to; ++i)
    at.push_back(std::clamp(nearest_of(form, source_of(form, a, i)), std::int64_t{0}, a.from - 1));
  return c.op("index", {x, c.constant(stored(DType::i64, {a.to}, at))},
              {{"dim", static_cast<std::int64_t>(axis)}});
}

/// Inserts the extrapolation value where an output element is outside the input.
fx::Value extrapolated(OnnxCall& c, const fx::Value& x, std::size_t axis, const ResizeForm& form,
                       const AxisResize& a) {
  std::vector<std::int64_t> inside;
  for (std::int64_t i = 0; i < a.to; ++i) {
    const double at = source_of(form, a, i);
    inside.push_back(at >= 0 && at <= static_cast<double>(a.from - 1));
  }
  const Type type = c.type(x);
  Shape along(type.shape.size(), c.dims().constant(1));
  along[axis] = c.dims().constant(a.to);
  const fx::Value mask = c.reshape(c.constant(stored(DType::b8, {a.to}, inside)), along);
  const fx::Value value =
      c.op("full", {}, {{"shape", Shape()}, {"value", form.extrapolation}, {"dtype", type.dtype}});
  return c.op("select", {mask, x, value});
}

fx::Value resized(OnnxCall& c, fx::Value x, std::size_t axis, const ResizeForm& form,
                  const AxisResize& a) {
  if (a.from == 0 || !(a.scale > 0)) throw GiveUp{"an axis is empty, or its scale is not positive"};
  for (const std::int64_t size : {a.from, a.to}) check_made(size);
  if (form.mode == "nearest")
    x = chosen_elements(c, x, axis, form, a);
  else if (form.mode == "linear" || form.mode == "cubic")
    x = times_matrix(c, x, axis, a.to, weights_of(form, a));
  else
    throw GiveUp{"mode `" + form.mode + "`"};
  return form.coordinates == "tf_crop_and_resize" ? extrapolated(c, x, axis, form, a) : x;
}

/// Chooses one scale for all axes: the largest with which all fit into the sizes, or the least with
/// which none is smaller.
void keep_ratio(std::vector<AxisResize>& axes, const std::string& policy) {
  if (policy == "stretch" || axes.empty()) return;
  if (policy != "not_larger" && policy != "not_smaller") throw GiveUp{"policy `" + policy + "`"};
  const auto less = [](const AxisResize& a, const AxisResize& b) { return a.scale < b.scale; };
  const double scale = policy == "not_larger" ? std::ranges::min_element(axes, less)->scale
                                              : std::ranges::max_element(axes, less)->scale;
  for (AxisResize& a : axes) {
    a.scale = scale;
    a.to = static_cast<std::int64_t>(
        std::floor(std::clamp(scale * static_cast<double>(a.from), 0.0, 1e12) + 0.5));
  }
}

std::vector<AxisResize> axis_resizes(OnnxCall& c, const std::vector<std::size_t>& axes,
                                     std::optional<std::size_t> scales,
                                     std::optional<std::size_t> sizes) {
  const Shape shape = c.type(0).shape;
  std::vector<AxisResize> out;
  for (const std::size_t axis : axes) out.push_back({c.extents({shape[axis]})[0], 0});
  const bool by_size = sizes && c.has(*sizes) && !c.integers(*sizes).empty();
  const auto given = by_size ? std::vector<double>() : c.reals(*scales);
  const auto extents = by_size ? c.integers(*sizes) : std::vector<std::int64_t>();
  if (scales && c.has(*scales)) (void)c.value(*scales);
  if (sizes && c.has(*sizes)) (void)c.value(*sizes);
  if ((by_size ? extents.size() : given.size()) != axes.size())
    throw GiveUp{"the number of scales or sizes differs from the number of axes"};
  for (std::size_t i = 0; i < out.size(); ++i) {
    AxisResize& a = out[i];
    a.scale = by_size ? static_cast<double>(extents[i]) / static_cast<double>(a.from) : given[i];
    a.to = by_size ? extents[i]
                   : static_cast<std::int64_t>(
                         std::floor(std::clamp(static_cast<double>(a.from) * a.scale, 0.0, 1e12)));
  }
  if (by_size)
    keep_ratio(out, c.text("keep_aspect_ratio_policy", "stretch"));
  else
    c.ignore("keep_aspect_ratio_policy");
  return out;
}

ModelValues resize_all(OnnxCall& c, const ResizeForm& form, const std::vector<std::size_t>& axes,
                       const std::vector<AxisResize>& resizes) {
  const fx::Value given = c.tensor(0);
  const DType dtype = c.type(given).dtype;
  if (form.mode != "nearest" && !is_float(dtype)) throw GiveUp{"it interpolates integers"};
  const bool half = dtype == DType::f16 || dtype == DType::bf16;
  fx::Value x = half ? c.cast(given, DType::f32) : given;
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (resizes[i].from != resizes[i].to || resizes[i].scale != 1 ||
        form.coordinates == "tf_crop_and_resize")
      x = resized(c, x, axes[i], form, resizes[i]);
  return {c.result(c.cast(x, dtype))};
}

ModelValues lower_resize(OnnxCall& c) {
  ResizeForm form{c.text("mode", "nearest"),
                  c.text("coordinate_transformation_mode", "half_pixel"),
                  c.text("nearest_mode", "round_prefer_floor"),
                  c.real("cubic_coeff_a", -0.75),
                  c.real("extrapolation_value", 0),
                  c.integer("antialias", 0) != 0,
                  c.integer("exclude_outside", 0) != 0};
  const std::size_t rank = c.rank(0);
  std::vector<std::int64_t> numbers(rank);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::vector<std::size_t> axes;
  for (const std::int64_t axis : c.integers("axes", numbers)) axes.push_back(axis_in(axis, rank));
  std::vector<AxisResize> resizes = axis_resizes(c, axes, 2, 3);
  if (c.has(1)) {
    const std::vector<double> region = c.reals(1);
    for (std::size_t i = 0; form.coordinates == "tf_crop_and_resize" && i < resizes.size(); ++i) {
      if (region.size() != 2 * resizes.size())
        throw GiveUp{"the region of interest is not two numbers for each axis"};
      resizes[i].begin = region[i];
      resizes[i].end = region[resizes.size() + i];
    }
  }
  return resize_all(c, form, axes, resizes);
}

// Version 10 has scales alone, and rounds as Upsample does.
ResizeForm older_form(OnnxCall& c) {
  ResizeForm form{c.text("mode", "nearest"), "asymmetric", "floor"};
  return form;
}

ModelValues lower_upsample(OnnxCall& c) {
  std::vector<std::size_t> axes(c.rank(0));
  std::iota(axes.begin(), axes.end(), 0);
  return resize_all(c, older_form(c), axes, axis_resizes(c, axes, 1, {}));
}

// Each output element's place, from -1 to 1 along each axis, times a matrix [batch, axes, axes +
// 1].
ModelValues lower_affine_grid(OnnxCall& c) {
  const fx::Value theta = c.tensor(0);
  const std::vector<std::int64_t> size = c.integers(1);
  const bool align = c.integer("align_corners", 0) != 0;
  const Type type = c.type(theta);
  if (size.size() < 4 || size.size() > 5 || type.shape.size() != 3)
    throw GiveUp{"the size does not have 4 or 5 numbers, or theta is not of rank 3"};
  const std::size_t axes = size.size() - 2;
  std::int64_t count = 1;
  for (std::size_t i = 2; i < size.size(); ++i) {
    check_made(size[i]);
    check_made(count *= size[i]);
  }
  if (count < 1 || count > (std::int64_t{1} << 24)) throw GiveUp{"it is empty or too large"};
  std::vector<double> base;
  for (std::int64_t at = 0; at < count; ++at) {
    std::int64_t rest = at;
    for (std::size_t i = size.size(); i-- > 2; rest /= size[i]) {  // the last axis first: x, y, z
      const auto n = static_cast<double>(size[i]), k = static_cast<double>(rest % size[i]);
      base.push_back(align ? (n > 1 ? 2 * k / (n - 1) - 1 : -1) : (2 * k + 1) / n - 1);
    }
    base.push_back(1);
  }
  const auto columns = static_cast<std::int64_t>(axes + 1);
  const fx::Value places = c.constant(stored(type.dtype, {1, count, columns}, base));
  const Shape wide{type.shape[0], c.dims().constant(count), c.dims().constant(columns)};
  const fx::Value grid = c.op("bmm", {c.expand(places, wide), c.permute(theta, {0, 2, 1})});
  Shape shape{type.shape[0]};
  for (std::size_t i = 2; i < size.size(); ++i) shape.push_back(c.dims().constant(size[i]));
  shape.push_back(c.dims().constant(static_cast<std::int64_t>(axes)));
  return {c.result(c.reshape(grid, shape))};
}

constexpr auto kResizeRows = std::to_array<Lowering>({
    {"Resize", 10, lower_upsample},
    {"Resize", 11, lower_resize},
    {"Upsample", 9, lower_upsample},
    {"AffineGrid", 20, lower_affine_grid},
});

}  // namespace

std::span<const Lowering> resize_lowerings() { return kResizeRows; }

}  // namespace pw::onnx
