#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "import/onnx/lowering.hpp"
#include "import/onnx/tensors.hpp"

namespace pw::onnx {
namespace {

ModelValues lower_identity(OnnxCall& c) { return {c.value(0)}; }

ModelValues lower_constant(OnnxCall& c) {
  const auto real_numbers = [](const std::vector<float>& f) {
    return std::vector<double>(f.begin(), f.end());
  };
  if (const OnnxAttribute* a = c.find("value"); a != nullptr && a->tensor)
    return {c.contents_of_attribute(*a->tensor)};
  if (c.has("value_float"))
    return {c.result(stored(DType::f32, {}, std::vector<double>{c.real("value_float", 0)}))};
  if (c.has("value_int"))
    return {c.result(stored(DType::i64, {}, std::vector<std::int64_t>{c.integer("value_int")}))};
  if (const OnnxAttribute* a = c.find("value_floats"))
    return {c.result(
        stored(DType::f32, {static_cast<std::int64_t>(a->reals.size())}, real_numbers(a->reals)))};
  if (const OnnxAttribute* a = c.find("value_ints"))
    return {
        c.result(stored(DType::i64, {static_cast<std::int64_t>(a->integers.size())}, a->integers))};
  throw GiveUp{"the constant is not a numeric tensor"};
}

ModelValues lower_fill(OnnxCall& c) {
  const Shape shape = c.dims(0);
  DType dtype = DType::f32;
  double value = 0;
  if (const OnnxAttribute* a = c.find("value")) {
    if (!a->tensor) throw GiveUp{"attribute `value` is not a tensor"};
    const ModelValue one = c.contents_of_attribute(*a->tensor);
    const std::optional<double> number =
        count_of(*one.contents) == 1 ? real_at(*one.contents, 0) : std::nullopt;
    if (!number) throw GiveUp{"attribute `value` is not a single number"};
    dtype = one.contents->dtype;
    value = *number;
  }
  return {c.result(c.op("full", {}, {{"shape", shape}, {"value", value}, {"dtype", dtype}}))};
}

// ---- shapes

// 0 copies the input's extent, unless `allowzero`; a -1 is inferred.
ModelValues lower_reshape(OnnxCall& c) {
  const Type type = c.type(0);
  Shape shape;
  if (c.count() > 1) {
    shape = c.dims(1);
  } else {
    for (const std::int64_t d : c.integers("shape", {})) shape.push_back(c.dims().constant(d));
  }
  const bool zeros = c.integer("allowzero", 0) != 0;
  for (std::size_t i = 0; i < shape.size() && !zeros; ++i)
    if (c.extent(shape[i]) == 0) {
      if (i >= type.shape.size())
        throw GiveUp{"a 0 in the shape copies an axis that the input lacks"};
      shape[i] = type.shape[i];
    }
  return {c.result(c.op("reshape", {c.tensor(0)}, {{"shape", shape}}))};
}

DimId product_of(OnnxCall& c, const Shape& shape, std::size_t begin, std::size_t end) {
  DimId out = c.dims().constant(1);
  for (std::size_t i = begin; i < end; ++i) out = c.dims().mul(out, shape[i]);
  if (!out.valid()) throw GiveUp{"a product of dims overflows"};
  return out;
}

ModelValues lower_flatten(OnnxCall& c) {
  const Shape shape = c.type(0).shape;
  const std::int64_t axis = c.integer("axis", 1);
  const std::size_t at =
      axis == static_cast<std::int64_t>(shape.size()) ? shape.size() : axis_in(axis, shape.size());
  const Shape flat{product_of(c, shape, 0, at), product_of(c, shape, at, shape.size())};
  return {c.result(c.reshape(c.tensor(0), flat))};
}

/// Returns the axes given by an input or an attribute; nothing if neither is present.
std::optional<std::vector<std::int64_t>> axes_of(OnnxCall& c) {
  if (c.has(1)) return c.integers(1);
  if (c.has("axes")) return c.integers("axes", {});
  return std::nullopt;
}

ModelValues lower_squeeze(OnnxCall& c) {
  const Shape shape = c.type(0).shape;
  const auto axes = axes_of(c);
  std::vector<bool> gone(shape.size(), false);
  for (const std::int64_t axis : axes.value_or(std::vector<std::int64_t>()))
    gone[axis_in(axis, shape.size())] = true;
  Shape out;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool one = c.extent(shape[i]) == 1;
    if (axes && gone[i] && !one) throw GiveUp{"an axis to be removed does not have size 1"};
    if (!axes && !one && !c.extent(shape[i]))
      throw GiveUp{"it is unknown whether an axis has size 1"};
    if (!(axes ? gone[i] : one)) out.push_back(shape[i]);
  }
  return {c.result(c.reshape(c.tensor(0), out))};
}

ModelValues lower_unsqueeze(OnnxCall& c) {
  const Shape shape = c.type(0).shape;
  const auto axes = axes_of(c);
  if (!axes) throw GiveUp{"the axes are missing"};
  std::vector<bool> fresh(shape.size() + axes->size(), false);
  for (const std::int64_t axis : *axes) {
    const std::size_t at = axis_in(axis, fresh.size());
    if (fresh[at]) throw GiveUp{"duplicate axis"};
    fresh[at] = true;
  }
  Shape out;
  auto next = shape.begin();
  for (const bool one : fresh) out.push_back(one ? c.dims().constant(1) : *next++);
  return {c.result(c.reshape(c.tensor(0), out))};
}

ModelValues lower_transpose(OnnxCall& c) {
  const std::size_t rank = c.rank(0);
  std::vector<std::int64_t> order = c.integers("perm", {});
  if (order.empty())
    for (std::size_t i = rank; i-- > 0;) order.push_back(static_cast<std::int64_t>(i));
  return {c.result(c.call("aten.permute", {c.tensor(0), c.list(order)}))};
}

ModelValues lower_expand(OnnxCall& c) {
  const Shape from = c.type(0).shape;
  Shape to = c.dims(1);
  if (to.size() < from.size()) to.insert(to.begin(), from.size() - to.size(), c.dims().constant(1));
  for (std::size_t i = 0; i < from.size(); ++i)
    if (DimId& d = to[to.size() - from.size() + i]; c.extent(d) == 1) d = from[i];
  return {c.result(c.expand(c.tensor(0), to))};
}

// ---- parts

std::int64_t axis_attribute(OnnxCall& c, std::size_t rank, std::int64_t otherwise) {
  return static_cast<std::int64_t>(axis_in(c.integer("axis", otherwise), rank));
}

ModelValues lower_concat(OnnxCall& c) {
  std::vector<fx::Value> parts;
  for (std::size_t i = 0; i < c.count(); ++i) parts.push_back(c.tensor(i));
  if (parts.empty()) throw GiveUp{"it has no inputs to concatenate"};
  const std::int64_t axis = c.version() < 4 ? c.integer("axis", 1) : c.integer("axis");
  return {c.result(
      c.op("cat", parts,
           {{"dim", static_cast<std::int64_t>(axis_in(axis, c.type(parts[0]).shape.size()))}}))};
}

/// Returns the sizes of as many parts as there are outputs, equal except perhaps the last.
Shape equal_sizes(OnnxCall& c, DimId extent, std::int64_t parts) {
  const std::optional<std::int64_t> count = c.extent(extent);
  Shape out;
  if (!count) {
    const DimId part = c.dims().div(extent, c.dims().constant(parts));
    if (c.dims().divides(c.dims().constant(parts), extent, c.facts()) != Truth::yes)
      throw GiveUp{"it is unknown whether the axis divides into equal parts"};
    return Shape(static_cast<std::size_t>(parts), part);
  }
  const std::int64_t size = (*count + parts - 1) / parts;
  if (size * (parts - 1) > *count) throw GiveUp{"the axis has too few elements for its parts"};
  for (std::int64_t i = 0; i < parts; ++i)
    out.push_back(c.dims().constant(i + 1 < parts ? size : *count - size * (parts - 1)));
  return out;
}

ModelValues lower_split(OnnxCall& c) {
  const Shape shape = c.type(0).shape;
  const std::int64_t axis = axis_attribute(c, shape.size(), 0);
  const auto parts = static_cast<std::int64_t>(c.node().outputs.size());
  if (c.has("num_outputs") && c.integer("num_outputs") != parts)
    throw GiveUp{"it names fewer parts than there are"};
  Shape sizes;
  if (c.has(1))
    sizes = c.dims(1);
  else if (c.has("split"))
    for (const std::int64_t size : c.integers("split", {}))
      sizes.push_back(c.dims().constant(size));
  else
    sizes = equal_sizes(c, shape[static_cast<std::size_t>(axis)], parts);
  if (static_cast<std::int64_t>(sizes.size()) != parts)
    throw GiveUp{"it names fewer parts than there are"};
  ModelValues out;
  for (fx::Value& part : c.ops("split", {c.tensor(0)}, {{"dim", axis}, {"sizes", sizes}}))
    out.push_back(c.result(part));
  return out;
}

struct AxisSlice {
  std::size_t axis;
  DimId begin, end;
  std::int64_t step;
};

/// Clamps bounds as ONNX does, for a forward step; the extent may be symbolic.
DimId forward_bound(OnnxCall& c, DimId given, DimId extent) {
  Dims& d = c.dims();
  const auto number = c.extent(given), size = c.extent(extent);
  if (number && size)
    return d.constant(std::clamp(*number < 0 ? *number + *size : *number, std::int64_t{0}, *size));
  if (number && *number >= (std::int64_t{1} << 31) - 1) return extent;
  const DimId at = number && *number < 0 ? d.add(extent, given) : given;
  const auto holds = [&](Compare op, DimId a, DimId b) {
    return d.prove(op, a, b, c.facts()) == Truth::yes;
  };
  if (holds(Compare::ge, at, extent)) return extent;
  if (number && *number >= 0) return d.min(given, extent);
  if (!holds(Compare::ge, at, d.constant(0))) {
    if (!number) throw GiveUp{"it is unknown whether a bound counts from the end"};
    return d.max(at, d.constant(0));
  }
  return d.min(at, extent);
}

// Backwards: the elements by their numbers.
fx::Value reversed_slice(OnnxCall& c, const fx::Value& x, std::size_t axis, std::int64_t begin,
                         std::int64_t end, std::int64_t step, std::int64_t size) {
  const auto bound = [&](std::int64_t at) {
    return std::clamp(at < 0 ? at + size : at, std::int64_t{-1}, size - 1);
  };
  check_made(size);
  step = std::max(step, -size - 1);
  std::vector<std::int64_t> at;
  const std::int64_t last = end < -size ? -1 : bound(end);
  for (std::int64_t i = begin >= size ? size - 1 : bound(begin); i > last; i += step)
    at.push_back(i);
  const auto count = static_cast<std::int64_t>(at.size());
  return c.op("index", {x, c.constant(stored(DType::i64, {count}, at))},
              {{"dim", static_cast<std::int64_t>(axis)}});
}

ModelValues lower_slice(OnnxCall& c) {
  const Shape shape = c.type(0).shape;
  const auto list = [&](std::size_t input, std::string_view attribute) -> Shape {
    if (c.has(input)) return c.dims(input);
    Shape out;
    for (const std::int64_t number : c.integers(attribute, {}))
      out.push_back(c.dims().constant(number));
    return out;
  };
  const Shape begins = list(1, "starts"), ends = list(2, "ends");
  std::vector<std::int64_t> axes = c.extents(list(3, "axes"));
  const std::vector<std::int64_t> steps = c.extents(list(4, "steps"));
  if (axes.empty()) {
    axes.resize(begins.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (ends.size() != begins.size() || axes.size() != begins.size() ||
      (!steps.empty() && steps.size() != begins.size()))
    throw GiveUp{"its lists differ in length"};
  fx::Value x = c.tensor(0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = axis_in(axes[i], shape.size());
    const std::int64_t step = steps.empty() ? 1 : steps[i];
    if (step == 0) throw GiveUp{"a step is 0"};
    if (step < 0) {
      x = reversed_slice(c, x, axis, c.extents({begins[i]})[0], c.extents({ends[i]})[0], step,
                         c.extents({shape[axis]})[0]);
      continue;
    }
    const DimId begin = forward_bound(c, begins[i], shape[axis]),
                end = forward_bound(c, ends[i], shape[axis]);
    const auto first = c.extent(begin), last = c.extent(end);
    x = c.slice(x, axis, begin, first && last && *last < *first ? begin : end, step);
  }
  return {c.result(x)};
}

ModelValues lower_tile(OnnxCall& c) {
  const Shape shape = c.type(0).shape;
  const std::vector<std::int64_t> repeats = c.integers(1);
  if (repeats.size() != shape.size()) throw GiveUp{"the number of repeats differs from the rank"};
  // Each axis gets one before it, which is expanded; then the two become one.
  Shape inserted, wide, out;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    inserted.insert(inserted.end(), {c.dims().constant(1), shape[i]});
    wide.insert(wide.end(), {c.dims().constant(repeats[i]), shape[i]});
    out.push_back(c.dims().mul(c.dims().constant(repeats[i]), shape[i]));
  }
  return {c.result(c.reshape(c.expand(c.reshape(c.tensor(0), inserted), wide), out))};
}

// ---- padding

/// Padding of one axis before and after; negative: elements are removed.
struct AxisPad {
  std::int64_t before = 0, after = 0;
};

fx::Value pad_with(OnnxCall& c, const fx::Value& x, std::size_t axis, AxisPad pad,
                   const fx::Value& fill) {
  const Type type = c.type(x);
  std::vector<fx::Value> parts;
  const auto block = [&](std::int64_t count) {
    Shape shape = type.shape;
    shape[axis] = c.dims().constant(count);
    if (count > 0) parts.push_back(c.expand(fill, shape));
  };
  block(pad.before);
  parts.push_back(x);
  block(pad.after);
  return parts.size() == 1 ? x : c.op("cat", parts, {{"dim", static_cast<std::int64_t>(axis)}});
}

/// Returns the place in an axis of `size` that place `at`, possibly outside, maps to.
std::int64_t shown_place(std::int64_t at, std::int64_t size, const std::string& mode) {
  if (mode == "edge") return std::clamp(at, std::int64_t{0}, size - 1);
  if (mode == "wrap") return ((at % size) + size) % size;
  if (size == 1) return 0;
  const std::int64_t period = 2 * (size - 1);  // reflect
  const std::int64_t in = ((at % period) + period) % period;
  return in < size ? in : period - in;
}

fx::Value pad_by_places(OnnxCall& c, const fx::Value& x, std::size_t axis, AxisPad pad,
                        const std::string& mode) {
  const std::int64_t size = c.extents({c.type(x).shape[axis]})[0];
  if (size == 0) throw GiveUp{"an empty axis cannot be padded in this mode"};
  for (const std::int64_t count : {size, pad.before, pad.after}) check_made(count);
  std::vector<std::int64_t> places;
  for (std::int64_t at = -pad.before; at < size + pad.after; ++at)
    places.push_back(shown_place(at, size, mode));
  const auto count = static_cast<std::int64_t>(places.size());
  return c.op("index", {x, c.constant(stored(DType::i64, {count}, places))},
              {{"dim", static_cast<std::int64_t>(axis)}});
}

fx::Value cropped(OnnxCall& c, const fx::Value& x, std::size_t axis, AxisPad& pad) {
  const AxisPad less{std::max<std::int64_t>(-pad.before, 0), std::max<std::int64_t>(-pad.after, 0)};
  pad = {std::max<std::int64_t>(pad.before, 0), std::max<std::int64_t>(pad.after, 0)};
  if (less.before == 0 && less.after == 0) return x;
  const DimId end = c.dims().sub(c.type(x).shape[axis], c.dims().constant(less.after));
  return c.slice(x, axis, c.dims().constant(less.before), end);
}

ModelValues lower_pad(OnnxCall& c) {
  fx::Value x = c.tensor(0);
  const std::size_t rank = c.type(x).shape.size();
  const std::vector<std::int64_t> pads =
      c.has(1) ? c.integers(1) : c.integers(c.has("paddings") ? "paddings" : "pads", {});
  std::vector<std::int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (c.has(3)) axes = c.integers(3);
  const std::string mode = c.text("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    throw GiveUp{"mode `" + mode + "`"};
  if (pads.size() != 2 * axes.size()) throw GiveUp{"its pads are not two numbers for each axis"};
  const fx::Value fill =
      c.has(2)
          ? c.reshape(c.tensor(2), {})
          : c.op("full", {},
                 {{"shape", Shape()}, {"value", c.real("value", 0)}, {"dtype", c.type(x).dtype}});
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = axis_in(axes[i], rank);
    AxisPad pad{pads[i], pads[axes.size() + i]};
    for (const std::int64_t count : {pad.before, pad.after})
      check_made(std::max(count, -(count + 1)));
    x = cropped(c, x, axis, pad);
    if (pad.before == 0 && pad.after == 0) continue;
    x = mode == "constant" ? pad_with(c, x, axis, pad, fill) : pad_by_places(c, x, axis, pad, mode);
  }
  return {c.result(x)};
}

// Each axis is cut, or padded with zeros, so that its middle stays.
ModelValues lower_center(OnnxCall& c) {
  fx::Value x = c.tensor(0);
  const Type type = c.type(x);
  const std::vector<std::int64_t> sizes = c.integers(1);
  std::vector<std::int64_t> axes(type.shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  axes = c.integers("axes", axes);
  if (axes.size() != sizes.size())
    throw GiveUp{"the number of sizes differs from the number of axes"};
  for (const std::int64_t size : sizes) check_made(size);
  const fx::Value zero =
      c.op("full", {}, {{"shape", Shape()}, {"value", 0.0}, {"dtype", type.dtype}});
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = axis_in(axes[i], type.shape.size());
    const std::int64_t size = c.extents({type.shape[axis]})[0], more = sizes[i] - size;
    AxisPad pad{more / 2, more - more / 2};
    if (more < 0) pad = {-((-more) / 2), -((-more) - (-more) / 2)};
    x = cropped(c, x, axis, pad);
    x = pad_with(c, x, axis, pad, zero);
  }
  return {c.result(x)};
}

// ---- blocks

ModelValues lower_depth_to_space(OnnxCall& c) {
  const Shape s = c.type(0).shape;
  const std::int64_t block = c.integer("blocksize");
  const bool crd = c.text("mode", "DCR") == "CRD";
  if (s.size() != 4 || block < 1 || block > kMostKnown)
    throw GiveUp{"its operand is not of rank 4, or the block size is invalid"};
  Dims& d = c.dims();
  const DimId b = d.constant(block), depth = d.div(s[1], d.constant(block * block));
  const Shape inserted =
      crd ? Shape{s[0], depth, b, b, s[2], s[3]} : Shape{s[0], b, b, depth, s[2], s[3]};
  const fx::Value x =
      c.permute(c.reshape(c.tensor(0), inserted), crd ? std::vector<std::size_t>{0, 1, 4, 2, 5, 3}
                                                      : std::vector<std::size_t>{0, 3, 4, 1, 5, 2});
  return {c.result(c.reshape(x, {s[0], depth, d.mul(s[2], b), d.mul(s[3], b)}))};
}

ModelValues lower_space_to_depth(OnnxCall& c) {
  const Shape s = c.type(0).shape;
  const std::int64_t block = c.integer("blocksize");
  if (s.size() != 4 || block < 1 || block > kMostKnown)
    throw GiveUp{"its operand is not of rank 4, or the block size is invalid"};
  Dims& d = c.dims();
  const DimId b = d.constant(block), h = d.div(s[2], b), w = d.div(s[3], b);
  const fx::Value x =
      c.permute(c.reshape(c.tensor(0), {s[0], s[1], h, b, w, b}), {0, 3, 5, 1, 2, 4});
  return {c.result(c.reshape(x, {s[0], d.mul(s[1], d.constant(block * block)), h, w}))};
}

// ---- casts

// For integers, ONNX does not define values that do not fit; for fp8, `saturate` does.
fx::Value cast_to(OnnxCall& c, DType to) {
  const fx::Value x = c.tensor(0);
  const bool fp8 = to == DType::f8e4m3 || to == DType::f8e5m2;
  if (c.integer("saturate", 1) == 0 && fp8)
    throw GiveUp{"a non-saturating cast to fp8 is not supported"};
  if (to == DType::b8) return c.type(x).dtype == DType::b8 ? x : c.op("ne", {x, c.number(0)});
  if (to != DType::f8e5m2 || !is_float(c.type(x).dtype)) return c.cast(x, to);
  constexpr double kLargest = 57344;  // infinity, which this dtype has, saturates, too
  return c.cast(c.op("minimum", {c.op("maximum", {x, real(-kLargest)}), real(kLargest)}), to);
}

ModelValues lower_cast(OnnxCall& c) {
  const std::int64_t element = c.integer("to");
  const std::optional<DType> to = dtype_of(element);
  if (!to) throw GiveUp{element_name(element) + " is not a supported dtype"};
  c.ignore("round_mode");  // of a dtype that the library lacks
  if (const KnownNumbers* x = c.known(0);
      x != nullptr && (*to == DType::f32 || *to == DType::f64)) {
    c.ignore("saturate");
    return {c.result(stored(*to, x->extents, c.extents(x->numbers)))};
  }
  return {c.result(cast_to(c, *to))};
}

ModelValues lower_cast_like(OnnxCall& c) {
  c.ignore("round_mode");
  return {c.result(cast_to(c, c.type(1).dtype))};
}

constexpr auto kLayoutRows = std::to_array<Lowering>({
    {"Identity", 1, lower_identity},
    {"Constant", 1, lower_constant},
    {"ConstantOfShape", 9, lower_fill},
    {"Reshape", 1, lower_reshape},
    {"Flatten", 1, lower_flatten},
    {"Squeeze", 1, lower_squeeze},
    {"Unsqueeze", 1, lower_unsqueeze},
    {"Transpose", 1, lower_transpose},
    {"Expand", 8, lower_expand},
    {"Concat", 1, lower_concat},
    {"Split", 1, lower_split},
    {"Slice", 1, lower_slice},
    {"Tile", 6, lower_tile},
    {"Pad", 1, lower_pad},
    {"CenterCropPad", 18, lower_center},
    {"DepthToSpace", 1, lower_depth_to_space},
    {"SpaceToDepth", 1, lower_space_to_depth},
    {"Cast", 6, lower_cast},
    {"CastLike", 15, lower_cast_like},
});

}  // namespace

std::span<const Lowering> layout_lowerings() { return kLayoutRows; }

}  // namespace pw::onnx
