#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "import/onnx/lowering.hpp"
#include "import/onnx/tensors.hpp"

namespace pw::onnx {
namespace {

/// Parameters of the axes after batch and channels.
struct Windows {
  std::vector<std::int64_t> kernel, stride, dilation, before, after;
  bool ceil = false;
  [[nodiscard]] bool even() const { return before == after; }
};

std::int64_t reach_of(const Windows& w, std::size_t i) {
  return (w.kernel[i] - 1) * w.dilation[i] + 1;
}

std::vector<std::int64_t> per_axis(OnnxCall& c, std::string_view name, std::size_t count,
                                   std::int64_t otherwise) {
  std::vector<std::int64_t> out = c.integers(name, std::vector<std::int64_t>(count, otherwise));
  if (out.size() != count)
    throw GiveUp{"attribute `" + std::string(name) + "` does not have one number for each axis"};
  for (const std::int64_t number : out) check_made(number);
  return out;
}

/// Pads before and after so that the result has ceil(extent / stride) elements.
void pad_same(OnnxCall& c, Windows& w, const Shape& extents, bool more_in_front) {
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    std::int64_t all = reach_of(w, i) - 1;
    if (w.stride[i] != 1) {
      const std::int64_t size = c.extents({extents[i]})[0],
                         windows = (size + w.stride[i] - 1) / w.stride[i];
      all = std::max<std::int64_t>((windows - 1) * w.stride[i] + reach_of(w, i) - size, 0);
    }
    w.before[i] = more_in_front ? all - all / 2 : all / 2;
    w.after[i] = all - w.before[i];
  }
}

/// Reads the attributes; `kernel`: used if they do not state it.
Windows windows_of(OnnxCall& c, const Shape& x, const std::vector<std::int64_t>& kernel) {
  if (x.size() < 3 || x.size() > 5) throw GiveUp{"it does not have one to three spatial axes"};
  const std::size_t count = x.size() - 2;
  Windows w;
  w.kernel = c.integers("kernel_shape", kernel);
  if (w.kernel.size() != count || (!kernel.empty() && w.kernel != kernel))
    throw GiveUp{"its kernel has the wrong shape"};
  for (const std::int64_t extent : w.kernel) check_made(extent);
  w.stride = per_axis(c, "strides", count, 1);
  w.dilation = per_axis(c, "dilations", count, 1);
  std::vector<std::int64_t> pads = per_axis(c, "pads", 2 * count, 0);
  w.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(count));
  w.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(count), pads.end());
  const std::string automatic = c.text("auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID" && automatic != "SAME_UPPER" &&
      automatic != "SAME_LOWER")
    throw GiveUp{"auto_pad `" + automatic + "`"};
  if (automatic != "NOTSET") w.before = w.after = std::vector<std::int64_t>(count, 0);
  if (automatic.starts_with("SAME"))
    pad_same(c, w, Shape(x.begin() + 2, x.end()), automatic == "SAME_LOWER");
  for (const auto* list : {&w.kernel, &w.stride, &w.dilation})
    if (std::any_of(list->begin(), list->end(), [](std::int64_t n) { return n < 1; }))
      throw GiveUp{"a kernel size, stride or dilation is below 1"};
  for (const auto* list : {&w.before, &w.after})
    if (std::any_of(list->begin(), list->end(), [](std::int64_t n) { return n < 0; }))
      throw GiveUp{"a pad is negative"};
  return w;
}

Shape as_dims(OnnxCall& c, const std::vector<std::int64_t>& numbers) {
  Shape out;
  for (const std::int64_t n : numbers) out.push_back(c.dims().constant(n));
  return out;
}

/// Applies the windows' padding to x itself, and removes it from the windows.
fx::Value padded_input(OnnxCall& c, fx::Value x, Windows& w, double fill) {
  const DType dtype = c.type(x).dtype;
  for (std::size_t i = 0; i < w.before.size(); ++i) {
    std::vector<fx::Value> parts{x};
    const auto block = [&](std::int64_t count) {
      Shape shape = c.type(x).shape;
      shape[i + 2] = c.dims().constant(count);
      return c.op("full", {}, {{"shape", shape}, {"value", fill}, {"dtype", dtype}});
    };
    if (w.before[i] > 0) parts.insert(parts.begin(), block(w.before[i]));
    if (w.after[i] > 0) parts.push_back(block(w.after[i]));
    if (parts.size() > 1) x = c.op("cat", parts, {{"dim", static_cast<std::int64_t>(i + 2)}});
  }
  w.before = w.after = std::vector<std::int64_t>(w.before.size(), 0);
  return x;
}

// ---- convolutions

fx::Value convolved_by(OnnxCall& c, fx::Value x, const fx::Value& w, const fx::Value& bias) {
  const Shape kernel = c.type(w).shape;
  if (kernel.size() != c.type(x).shape.size() || kernel.size() < 3)
    throw GiveUp{"its kernel has the wrong rank"};
  Windows windows =
      windows_of(c, c.type(x).shape, c.extents(Shape(kernel.begin() + 2, kernel.end())));
  if (!windows.even()) x = padded_input(c, x, windows, 0);
  return c.op("convolution", {x, w, bias},
              {{"stride", as_dims(c, windows.stride)},
               {"padding", as_dims(c, windows.before)},
               {"dilation", as_dims(c, windows.dilation)},
               {"groups", c.integer("group", 1)}});
}

ModelValues lower_conv(OnnxCall& c) {
  return {c.result(convolved_by(c, c.tensor(0), c.tensor(1), c.has(2) ? c.tensor(2) : none()))};
}

/// Computes what the padding leaves of stride · (extent - 1) + reach, and how much is cut off at
/// the front.
void transposed_sizes(OnnxCall& c, Windows& w, const Shape& x, Shape& size) {
  const std::vector<std::int64_t> extra = per_axis(c, "output_padding", w.kernel.size(), 0);
  const std::vector<std::int64_t> wanted = c.integers("output_shape", {});
  const bool same = c.text("auto_pad", "NOTSET").starts_with("SAME");
  const bool lower = c.text("auto_pad", "NOTSET") == "SAME_LOWER";
  Dims& d = c.dims();
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    const DimId steps = d.mul(d.sub(x[i + 2], d.constant(1)), d.constant(w.stride[i]));
    const DimId full = d.add(steps, d.constant(reach_of(w, i) + extra[i]));
    if (wanted.empty() && !same) {
      size.push_back(d.sub(full, d.constant(w.before[i] + w.after[i])));
      continue;
    }
    const DimId to = wanted.empty() ? d.mul(x[i + 2], d.constant(w.stride[i]))
                                    : d.constant(wanted.at(wanted.size() - w.kernel.size() + i));
    const std::int64_t all = c.extents({d.sub(full, to)})[0];
    if (all < 0) throw GiveUp{"the output is larger than its windows cover"};
    w.before[i] = lower ? all - all / 2 : all / 2;
    w.after[i] = all - w.before[i];
    size.push_back(to);
  }
}

ModelValues lower_conv_transpose(OnnxCall& c) {
  const fx::Value x = c.tensor(0), weight = c.tensor(1);
  const Shape shape = c.type(x).shape, kernel = c.type(weight).shape;
  if (kernel.size() != shape.size() || kernel.size() < 3)
    throw GiveUp{"its kernel has the wrong rank"};
  const std::string automatic = c.text("auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID" && !automatic.starts_with("SAME"))
    throw GiveUp{"auto_pad `" + automatic + "`"};
  Windows w;
  w.kernel = c.extents(Shape(kernel.begin() + 2, kernel.end()));
  if (c.integers("kernel_shape", w.kernel) != w.kernel || shape.size() < 3 || shape.size() > 5)
    throw GiveUp{"its kernel has the wrong shape"};
  for (const std::int64_t extent : w.kernel) check_made(extent);
  w.stride = per_axis(c, "strides", w.kernel.size(), 1);
  w.dilation = per_axis(c, "dilations", w.kernel.size(), 1);
  const std::vector<std::int64_t> pads = per_axis(c, "pads", 2 * w.kernel.size(), 0);
  w.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(w.kernel.size()));
  w.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(w.kernel.size()), pads.end());
  Shape size;
  transposed_sizes(c, w, shape, size);
  // Padding is cut off the unpadded result, so the two sides may differ.
  Shape whole;
  for (std::size_t i = 0; i < size.size(); ++i)
    whole.push_back(c.dims().add(size[i], c.dims().constant(w.before[i] + w.after[i])));
  fx::Value y = c.op("transposed_convolution", {x, weight, c.has(2) ? c.tensor(2) : none()},
                     {{"size", whole},
                      {"stride", as_dims(c, w.stride)},
                      {"padding", Shape(whole.size(), c.dims().constant(0))},
                      {"dilation", as_dims(c, w.dilation)},
                      {"groups", c.integer("group", 1)}});
  for (std::size_t i = 0; i < whole.size(); ++i)
    if (whole[i] != size[i])
      y = c.slice(y, i + 2, c.dims().constant(w.before[i]),
                  c.dims().add(size[i], c.dims().constant(w.before[i])));
  return {c.result(y)};
}

/// Subtracts a zero point, in f64, whose sums of 8-bit products are exact. A kernel may have one
/// for each output channel.
fx::Value less_zero(OnnxCall& c, std::size_t x, std::size_t zero) {
  const fx::Value wide = c.cast(c.tensor(x), DType::f64);
  if (!c.has(zero)) return wide;
  fx::Value point = c.cast(c.tensor(zero), DType::f64);
  const Shape shape = c.type(point).shape;
  Shape along(c.type(wide).shape.size(), c.dims().constant(1));
  if (!shape.empty()) along[0] = shape[0];
  return c.op("sub", {wide, c.reshape(point, along)});
}

ModelValues lower_conv_integer(OnnxCall& c) {
  return {c.result(
      c.cast(convolved_by(c, less_zero(c, 0, 2), less_zero(c, 1, 3), none()), DType::i32))};
}

ModelValues lower_qlinear_conv(OnnxCall& c) {
  fx::Value y = convolved_by(c, less_zero(c, 0, 2), less_zero(c, 3, 5),
                             c.has(8) ? c.cast(c.tensor(8), DType::f64) : none());
  const DType to = c.type(7).dtype;
  if (to != DType::u8 && to != DType::i8)
    throw GiveUp{"unsupported quantisation to " + std::string(name(to))};
  const double least = to == DType::u8 ? 0 : -128;
  fx::Value scale = c.op("div", {c.op("mul", {c.tensor(1), c.tensor(4)}), c.tensor(6)});
  if (const Shape shape = c.type(scale).shape; !shape.empty()) {
    Shape along(c.type(y).shape.size(), c.dims().constant(1));
    along[1] = shape[0];
    scale = c.reshape(scale, along);
  }
  y = c.op("round", {c.op("mul", {c.cast(y, DType::f32), scale})});
  y = c.op("add", {y, c.cast(c.tensor(7), DType::f32)});
  return {c.result(
      c.cast(c.op("minimum", {c.op("maximum", {y, real(least)}), real(least + 255)}), to))};
}

// Columns [n, c · block, places] added up where their windows lie: image and padding as one axis,
// of which the padding is cut off.
ModelValues lower_col2im(OnnxCall& c) {
  const std::vector<std::int64_t> image = c.integers(1), block = c.integers(2);
  const Shape given = c.type(0).shape;
  const std::size_t axes = image.size();
  if (given.size() != 3 || block.size() != axes || axes == 0)
    throw GiveUp{"its operand is not of rank 3, or its shapes do not have the same number of axes"};
  const auto stride = per_axis(c, "strides", axes, 1), dilation = per_axis(c, "dilations", axes, 1),
             pads = per_axis(c, "pads", 2 * axes, 0);
  for (const auto* list : {&image, &block})
    for (const std::int64_t number : *list) check_made(number);
  if (*std::ranges::min_element(stride) < 1 || axes > 8)
    throw GiveUp{"a stride is below 1, or there are more than 8 axes"};
  std::vector<std::int64_t> whole, steps;
  std::int64_t blocks = 1, windows = 1, elements = 1;
  for (std::size_t i = 0; i < axes; ++i) {
    whole.push_back(image[i] + pads[i] + pads[axes + i]);
    steps.push_back((whole[i] - (block[i] - 1) * dilation[i] - 1) / stride[i] + 1);
    check_made(steps[i]);
    check_made(blocks *= block[i]);
    check_made(windows *= steps[i]);
    check_made(elements *= whole[i]);
  }
  if (blocks < 1 || windows < 1 || blocks * windows > (std::int64_t{1} << 24))
    throw GiveUp{"it is empty or too large"};
  std::vector<std::int64_t> places;
  for (std::int64_t at = 0; at < blocks * windows; ++at) {
    std::int64_t b = at / windows, w = at % windows, place = 0, scale = 1;
    for (std::size_t i = axes; i-- > 0;) {
      place += scale * (b % block[i] * dilation[i] + w % steps[i] * stride[i]);
      b /= block[i];
      w /= steps[i];
      scale *= whole[i];
    }
    places.push_back(place);
  }
  Dims& d = c.dims();
  const DimId channels = d.div(given[1], d.constant(blocks)), rows = d.mul(given[0], channels);
  const fx::Value values = c.reshape(c.tensor(0), {rows, d.constant(blocks * windows)});
  const fx::Value zero = c.op(
      "full", {},
      {{"shape", Shape{rows, d.constant(elements)}}, {"value", 0.0}, {"dtype", c.type(0).dtype}});
  const fx::Value at = c.constant(stored(DType::i64, {blocks * windows}, places));
  fx::Value y = c.op("index_put", {zero, values, at},
                     {{"dim", std::int64_t{1}}, {"reduce", std::string("sum")}});
  Shape shape{given[0], channels};
  for (const std::int64_t n : whole) shape.push_back(d.constant(n));
  y = c.reshape(y, shape);
  for (std::size_t i = 0; i < axes; ++i)
    if (whole[i] != image[i])
      y = c.slice(y, i + 2, d.constant(pads[i]), d.constant(pads[i] + image[i]));
  return {c.result(y)};
}

// ---- pools

OnnxCall::OpAttributes pool_attributes(OnnxCall& c, const Windows& w) {
  return {{"kernel", as_dims(c, w.kernel)},
          {"stride", as_dims(c, w.stride)},
          {"padding", as_dims(c, w.before)},
          {"ceil", w.ceil}};
}

Windows pool_windows(OnnxCall& c) {
  Windows w = windows_of(c, c.type(0).shape, {});
  w.ceil = c.integer("ceil_mode", 0) != 0;
  if (w.ceil && !w.even()) throw GiveUp{"windows extend beyond asymmetric padding"};
  return w;
}

/// Converts places within the images to places within the whole tensor, by rows.
fx::Value places_in_all(OnnxCall& c, const fx::Value& index) {
  const Shape x = c.type(0).shape;
  DimId image = c.dims().constant(1);
  for (std::size_t i = 2; i < x.size(); ++i) image = c.dims().mul(image, x[i]);
  const DimId images = c.dims().mul(x[0], x[1]);
  const std::int64_t size = c.extents({image})[0];
  const fx::Value first =
      c.op("mul", {c.op("iota", {}, {{"shape", Shape{images}}}), c.number(size)});
  Shape shape(x.size(), c.dims().constant(1));
  shape[0] = x[0];
  shape[1] = x[1];
  return c.op("add", {index, c.reshape(first, shape)});
}

ModelValues lower_max_pool(OnnxCall& c) {
  Windows w = pool_windows(c);
  const bool places = c.node().outputs.size() > 1 && !c.node().outputs[1].empty();
  if (c.integer("storage_order", 0) != 0 && places)
    throw GiveUp{"indices in column-major order are not supported"};
  fx::Value x = c.tensor(0);
  const bool reaches = std::ranges::any_of(w.kernel, [&](const std::int64_t& k) {
    return 2 * w.before[static_cast<std::size_t>(&k - w.kernel.data())] > k;
  });
  if (!w.even() || reaches) {
    if (places || w.ceil || !is_float(c.type(x).dtype))
      throw GiveUp{"asymmetric or wide padding is not supported here"};
    x = padded_input(c, x, w, -std::numeric_limits<double>::infinity());
  }
  OnnxCall::OpAttributes attributes = pool_attributes(c, w);
  attributes.emplace_back("dilation", as_dims(c, w.dilation));
  const std::vector<fx::Value> out = c.ops("max_pool", {x}, attributes);
  ModelValues results{c.result(out.at(0))};
  if (places) results.push_back(c.result(places_in_all(c, out.at(1))));
  return results;
}

bool is_dilated(const Windows& w) {
  return std::ranges::any_of(w.dilation, [](std::int64_t d) { return d != 1; });
}

// Asymmetric padding becomes part of the input, as zeros. Unless the padding counts, the mean is
// divided by that of an input of ones.
ModelValues lower_average_pool(OnnxCall& c) {
  Windows w = pool_windows(c);
  if (is_dilated(w)) throw GiveUp{"the mean of dilated windows is not supported"};
  const bool all = c.integer("count_include_pad", 0) != 0;
  const fx::Value x = c.tensor(0);
  OnnxCall::OpAttributes attributes = pool_attributes(c, w);
  attributes.emplace_back("include_padding", all);
  const bool reaches = std::ranges::any_of(w.kernel, [&](const std::int64_t& k) {
    return 2 * w.before[static_cast<std::size_t>(&k - w.kernel.data())] > k;
  });
  if (w.even() && !reaches) return {c.result(c.op("avg_pool", {x}, attributes))};
  if (w.ceil) throw GiveUp{"asymmetric or wide padding is not supported here"};
  const auto mean = [&](const fx::Value& of) {
    Windows own = w;
    const fx::Value wide = padded_input(c, of, own, 0);
    return c.op("avg_pool", {wide}, pool_attributes(c, own));
  };
  if (all) return {c.result(mean(x))};
  const fx::Value ones =
      c.op("full", {}, {{"shape", c.type(x).shape}, {"value", 1.0}, {"dtype", c.type(x).dtype}});
  return {c.result(c.op("div", {mean(x), mean(ones)}))};
}

/// Computes |x|^p, summed by `sum`, to the power of 1 / p.
template <class Sum>
fx::Value norm_by(OnnxCall& c, const fx::Value& x, Sum sum) {
  const auto p = static_cast<double>(c.integer("p", 2));
  return c.op("pow", {sum(c.op("pow", {c.op("abs", {x}), real(p)})), real(1 / p)});
}

ModelValues lower_lp_pool(OnnxCall& c) {
  Windows w = pool_windows(c);
  if (is_dilated(w)) throw GiveUp{"the norm of dilated windows is not supported"};
  return {c.result(norm_by(c, c.tensor(0), [&](fx::Value x) {
    if (!w.even()) x = padded_input(c, x, w, 0);
    OnnxCall::OpAttributes attributes = pool_attributes(c, w);
    attributes.emplace_back("divisor", std::int64_t{1});
    return c.op("avg_pool", {x}, attributes);
  }))};
}

fx::Value over_image(OnnxCall& c, fx::Value x, std::string_view op) {
  for (std::size_t axis = c.type(x).shape.size(); axis-- > 2;)
    x = c.op(op, {x}, {{"dim", static_cast<std::int64_t>(axis)}, {"keepdim", true}});
  return x;
}

ModelValues lower_global_average(OnnxCall& c) {
  return {c.result(over_image(c, c.tensor(0), "mean"))};
}
ModelValues lower_global_max(OnnxCall& c) { return {c.result(over_image(c, c.tensor(0), "amax"))}; }
ModelValues lower_global_lp(OnnxCall& c) {
  return {c.result(
      norm_by(c, c.tensor(0), [&](const fx::Value& x) { return over_image(c, x, "sum"); }))};
}

constexpr auto kWindowRows = std::to_array<Lowering>({
    {"Conv", 1, lower_conv},
    {"ConvTranspose", 1, lower_conv_transpose},
    {"ConvInteger", 10, lower_conv_integer},
    {"QLinearConv", 10, lower_qlinear_conv},
    {"Col2Im", 18, lower_col2im},
    {"MaxPool", 1, lower_max_pool},
    {"AveragePool", 1, lower_average_pool},
    {"LpPool", 2, lower_lp_pool},
    {"GlobalAveragePool", 1, lower_global_average},
    {"GlobalMaxPool", 1, lower_global_max},
    {"GlobalLpPool", 2, lower_global_lp},
});

}  // namespace

std::span<const Lowering> window_lowerings() { return kWindowRows; }

}  // namespace pw::onnx
