#include <algorithm>
#include <cmath>

#include "graph/text/type_text.hpp"
#include "import/fx/calls/apply.hpp"

namespace pw::fx {
namespace {

// In i64; with a step of 1, a start that is a symbol is the beginning of a slice.
std::optional<ValueId> whole_range(Maker& make, DimId start, DimId end, DimId step,
                                   const Site& site) {
  Emitter& emitter = make.emitter();
  Dims& dims = emitter.dims();
  const std::optional<std::int64_t> first = dims.value(start), by = dims.value(step);
  const auto fits = [](std::int64_t v) { return v > -kMaxDim && v < kMaxDim; };
  if (!by || *by == 0 || !fits(*by) || (first && !fits(*first))) return std::nullopt;
  DimId count = *by > 0 ? dims.sub(end, start) : dims.sub(start, end);
  const std::int64_t stride = std::abs(*by);
  count = count.valid()
              ? dims.div(dims.add(count, dims.constant(stride - 1)), dims.constant(stride))
              : count;
  if (!count.valid()) return std::nullopt;
  if (dims.value(count).value_or(0) < 0) return std::nullopt;
  const auto iota = [&](DimId extent) { return make("iota", {}, {{"shape", Shape{extent}}}); };
  if (!first && *by == 1 && dims.value(end).value_or(0) >= 0 &&
      dims.prove(Compare::ge, start, dims.constant(0), emitter.graph().facts) == Truth::yes)
    return make(
        "slice", {iota(end)},
        {{"dim", std::int64_t{0}}, {"start", bound_of(dims, start)}, {"end", bound_of(dims, end)}});
  ValueId out = iota(count);
  const std::optional<ValueId> factor = emitter.as_operand(integer(emitter.dims(), *by), site);
  if (!factor) return std::nullopt;
  if (*by != 1) out = make("mul", {out, *factor}, {});
  if (!first) return make("add", {out, make("extent", {}, {{"value", start}})}, {});
  const std::optional<ValueId> offset = emitter.as_operand(integer(emitter.dims(), *first), site);
  if (!offset) return std::nullopt;
  if (*first != 0) out = make("add", {out, *offset}, {});
  return out;
}

// start + i * step, of bf16 and f16 in f32, else in f64.
std::optional<ValueId> real_range(Maker& make, const Value& start, const Value& end,
                                  const Value& step, DType dtype, const Site& site) {
  Emitter& emitter = make.emitter();
  const std::optional<double> first = as_real(emitter.dims(), start),
                              last = as_real(emitter.dims(), end),
                              by = as_real(emitter.dims(), step);
  if (!first || !last || !by || *by == 0) return std::nullopt;
  const double count = std::ceil((*last - *first) / *by);
  if (!(count >= 0 && count < static_cast<double>(kMaxDim))) return std::nullopt;
  const DimId extent = emitter.dims().constant(static_cast<std::int64_t>(count));
  Value factor, offset;
  factor.kind = offset.kind = Value::Kind::real;
  factor.real = *by;
  offset.real = *first;
  const std::optional<ValueId> f = emitter.as_operand(factor, site),
                               o = emitter.as_operand(offset, site);
  if (!f || !o) return std::nullopt;
  const ValueId places = make("iota", {}, {{"shape", Shape{extent}}, {"dtype", dtype}});
  return make("add", {make("mul", {places, *f}, {}), *o}, {});
}

// Returns the numbers of elements added before and after each axis, the last axis first. Nothing if
// unknown.
std::optional<Pads> pads_of(const Value* list, std::size_t rank) {
  std::optional<Shape> given = list ? as_shape(*list) : std::nullopt;
  if (!given || given->size() % 2 != 0 || given->size() / 2 > rank) return std::nullopt;
  Pads out;
  for (std::size_t i = 0; i < given->size(); i += 2) out.emplace_back((*given)[i], (*given)[i + 1]);
  return out;
}

// How many elements a moment divides by: their number less the correction, not less than 0.
ValueId divisor(Maker& make, DimId count, double less, DType dtype) {
  Emitter& emitter = make.emitter();
  const auto number = [&](double value) {
    return make("full", {}, {{"shape", Shape()}, {"dtype", dtype}, {"value", value}});
  };
  if (const auto known = emitter.dims().value(count))
    return number(std::max(0.0, static_cast<double>(*known) - less));
  const ValueId all = make("cast", {make("extent", {}, {{"value", count}})}, {{"dtype", dtype}});
  return make("maximum", {make("sub", {all, number(less)}, {}), number(0)}, {});
}

// Returns the correction, 1 unless stated; nothing if it is not a number.
std::optional<double> correction_of(const Dims& dims, const Bound& bound) {
  if (const Value* unbiased = bound.find("unbiased")) return unbiased->boolean ? 1 : 0;
  const Value* given = bound.find("correction");
  if (!given || given->kind == Value::Kind::none) return 1;
  return as_real(dims, *given);
}

// Returns the padding of each axis for `padding = "same"`, the last one first: half before, the odd
// element after.
std::optional<Pads> same_pads(Dims& dims, const Shape& kernel, const Shape& dilation) {
  Pads out;
  for (std::size_t i = kernel.size(); i-- > 0;) {
    const auto size = dims.value(kernel[i]), spacing = dims.value(dilation[i]);
    if (!size || !spacing) return std::nullopt;
    const std::int64_t whole = *spacing * (*size - 1);
    out.emplace_back(dims.constant(whole / 2), dims.constant(whole - whole / 2));
  }
  return out;
}

}  // namespace

// ---- arange

// Makes i64 of whole numbers and f32 of others, unless a dtype is named.
Applied convert_arange(const KnownCall& call) {
  const Value zero = integer(call.dims(), 0), one = integer(call.dims(), 1);
  Value start = call.find("start") ? *call.find("start") : zero,
        step = call.find("step") ? *call.find("step") : one, end = *call.find("end");
  const Value* dtype = call.find("dtype");
  if (dtype && dtype->kind != Value::Kind::dtype && dtype->kind != Value::Kind::none)
    return kNotThis;
  const auto all_whole = [&] {
    return start.kind == Value::Kind::integer && end.kind == Value::Kind::integer &&
           step.kind == Value::Kind::integer;
  };
  DType to = all_whole() ? DType::i64 : DType::f32;
  if (dtype && dtype->kind == Value::Kind::dtype) to = dtype->dtype;
  for (Value* number : {&start, &end, &step})  // 1.0 is 1
    if (number->kind == Value::Kind::real && std::trunc(number->real) == number->real &&
        std::abs(number->real) < static_cast<double>(kMaxDim))
      *number = integer(call.dims(), static_cast<std::int64_t>(number->real));
  const bool whole = all_whole();
  Maker make(call.emitter, call.site);
  const bool plain = whole && to == DType::i64 && call.dims().value(start.dim) == 0 &&
                     call.dims().value(step.dim) == 1;
  if (plain && call.dims().value(end.dim).value_or(0) >= 0) {
    const ValueId made = make("iota", {}, {{"shape", Shape{end.dim}}}, call.wanted);
    if (made.valid())
      call.emitter.effects().once(),
          call.emitter.effects().add_maker(made);  // its literal may be a count
    return make.done(made);
  }
  const bool narrow = to != DType::f32 && to != DType::f64;
  const DType made = whole ? DType::i64 : narrow ? DType::f32 : DType::f64;
  if (!whole && !is_float(to)) return kNotThis;
  std::optional<ValueId> values = whole ? whole_range(make, start.dim, end.dim, step.dim, call.site)
                                        : real_range(make, start, end, step, made, call.site);
  if (!values) return kNotThis;
  if (made != to) return make.done(make("cast", {*values}, {{"dtype", to}}, call.wanted));
  return make.done(make("detach", {*values}, {}, call.wanted));
}

// ---- repeat

// Inserts an axis of repetitions before each axis, and merges both.
Applied convert_repeat(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  std::optional<Shape> times = as_shape(*call.find("repeats"));
  if (!type || !times) return kNotThis;
  Dims& dims = call.dims();
  const DimId one = dims.constant(1);
  while (call.bound.mapping->target == "aten.tile" && times->size() < type->shape.size())
    times->insert(times->begin(), one);
  if (times->size() < type->shape.size()) return kNotThis;
  const std::size_t lead = times->size() - type->shape.size();
  Shape inserted, spread, joined;
  for (std::size_t i = 0; i < times->size(); ++i) {
    const DimId extent = i < lead ? one : type->shape[i - lead];
    inserted.insert(inserted.end(), {one, extent});
    spread.insert(spread.end(), {(*times)[i], extent});
    joined.push_back(dims.mul((*times)[i], extent));
    if (!joined.back().valid() || dims.value((*times)[i]).value_or(0) < 0) return kNotThis;
  }
  Maker make(call.emitter, call.site);
  const ValueId wide = make("reshape", {*x}, {{"shape", std::move(inserted)}});
  const ValueId all = make("expand", {wide}, {{"shape", std::move(spread)}});
  return make.done(make("reshape", {all}, {{"shape", std::move(joined)}}, call.wanted));
}

// ---- pads

ValueId part_of_axis(Maker& make, ValueId x, std::size_t axis, DimId start, DimId end) {
  Emitter& emitter = make.emitter();
  return make("slice", {x},
              {{"dim", static_cast<std::int64_t>(axis)},
               {"start", bound_of(emitter.dims(), start)},
               {"end", bound_of(emitter.dims(), end)}});
}

std::optional<ValueId> padded(Maker& make, ValueId x, const Pads& pads, const Attribute& value) {
  Emitter& emitter = make.emitter();
  Dims& dims = emitter.dims();
  const Type* type = emitter.type_of(x);
  if (!type) return std::nullopt;
  Shape shape = type->shape;
  const DType dtype = type->dtype;
  const DimId none = dims.constant(0);
  for (std::size_t k = 0; k < pads.size(); ++k) {
    const std::size_t axis = shape.size() - 1 - k;
    const auto [before, after] = pads[k];
    const bool cuts_front = dims.value(before).value_or(0) < 0,
               cuts_back = dims.value(after).value_or(0) < 0;
    for (const DimId amount : {before, after})
      if (!dims.value(amount) &&
          dims.prove(Compare::ge, amount, none, emitter.graph().facts) != Truth::yes)
        return std::nullopt;
    if (cuts_front || cuts_back) {
      const DimId start = cuts_front ? dims.sub(none, before) : none,
                  end = cuts_back ? dims.add(shape[axis], after) : shape[axis];
      if (!start.valid() || !end.valid() ||
          dims.prove(Compare::le, start, end, emitter.graph().facts) != Truth::yes)
        return std::nullopt;
      x = part_of_axis(make, x, axis, start, end);
      shape[axis] = dims.sub(end, start);
    }
    const auto filled = [&](DimId count) {
      Shape part = shape;
      part[axis] = count;
      return make("full", {}, {{"shape", part}, {"dtype", dtype}, {"value", value}});
    };
    std::vector<ValueId> parts = {x};
    DimId extent = shape[axis];
    const auto add = [&](DimId amount, bool front) {
      if (dims.value(amount).value_or(1) <= 0) return;
      parts.insert(front ? parts.begin() : parts.end(), filled(amount));
      extent = extent.valid() ? dims.add(extent, amount) : extent;
    };
    add(before, true);
    add(after, false);
    if (!extent.valid()) return std::nullopt;
    if (parts.size() > 1) x = make("cat", parts, {{"dim", static_cast<std::int64_t>(axis)}});
    shape[axis] = extent;
  }
  return x;
}

Applied convert_pad(const KnownCall& call) {
  const Value* mode = call.find("mode");
  if (mode && mode->text != "constant") return convert_pad_edges(call);
  const auto [x, type] = call.tensor("self");
  const Value zero = integer(call.dims(), 0), &given = *call.find("value"),
              &value = given.kind == Value::Kind::none ? zero : given;
  const std::optional<Attribute> number =
      type ? fill_of(call.dims(), value, type->dtype) : std::nullopt;
  if (!number || (value.kind == Value::Kind::real && !is_float(type->dtype))) return kNotThis;
  const auto pads = pads_of(call.find("pad"), type->shape.size());
  if (!pads) return kNotThis;
  Maker make(call.emitter, call.site);
  const std::optional<ValueId> out = padded(make, *x, *pads, *number);
  if (!out) return kNotThis;
  return make.done(make(*out == *x ? "clone" : "detach", {*out}, {}, call.wanted));
}

// Pads x with its own elements: the outermost one, mirrored neighbours, or, circular, those of the
// other end.
Applied convert_pad_edges(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  const Value* given = call.find("padding") ? call.find("padding") : call.find("pad");
  const auto pads = type ? pads_of(given, type->shape.size()) : std::nullopt;
  if (!pads) return kNotThis;
  const Value* mode = call.find("mode");
  const bool mirror = mode
                          ? mode->text == "reflect"
                          : call.bound.mapping->target.find("reflection") != std::string_view::npos,
             circular = mode && mode->text == "circular";
  if (mode && !mirror && !circular && mode->text != "replicate") return kNotThis;
  Dims& dims = call.dims();
  Shape shape = type->shape;
  Maker make(call.emitter, call.site);
  ValueId out = *x;
  for (std::size_t k = 0; k < pads->size(); ++k) {
    const std::size_t axis = shape.size() - 1 - k;
    const auto before = dims.value((*pads)[k].first), after = dims.value((*pads)[k].second);
    const DimId whole = shape[axis], unit = dims.constant(1);
    if (!before || !after || *before < 0 || *after < 0) return kNotThis;
    if (*before == 0 && *after == 0) continue;
    const std::int64_t most = std::max(*before, *after), least = circular ? most
                                                                 : mirror ? most + 1
                                                                          : 1;
    if (dims.prove(Compare::ge, whole, dims.constant(least), call.emitter.graph().facts) !=
            Truth::yes &&
        (dims.value(whole) || !call.emitter.assumptions().assume(Compare::ge, whole, least,
                                                                 "the padding copies its edges")))
      return kNotThis;
    const auto part = [&](DimId start, DimId count) {
      return part_of_axis(make, out, axis, start, dims.add(start, count));
    };
    const auto edge = [&](std::int64_t amount, bool front) {
      const DimId count = dims.constant(amount), zero = dims.constant(0);
      if (circular) return part(front ? dims.sub(whole, count) : zero, count);
      if (mirror)
        return flipped(make, part(front ? unit : dims.sub(whole, dims.add(count, unit)), count),
                       count, axis);
      Shape wide = shape;
      wide[axis] = count;
      return make("expand", {part(front ? zero : dims.sub(whole, unit), unit)},
                  {{"shape", std::move(wide)}});
    };
    std::vector<ValueId> parts = {out};
    if (*before > 0) parts.insert(parts.begin(), edge(*before, true));
    if (*after > 0) parts.push_back(edge(*after, false));
    out = make("cat", parts, {{"dim", static_cast<std::int64_t>(axis)}});
    shape[axis] = dims.add(whole, dims.constant(*before + *after));
  }
  return make.done(make(out == *x ? "clone" : "detach", {out}, {}, call.wanted));
}

// ---- diagonal

// Merges two axes and takes every element one row and one column further: a view.
Applied convert_diagonal(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  const std::size_t rank = type ? type->shape.size() : 0;
  const auto offset = call.integer("offset");
  const auto first = axis_of(call.integer("dim1"), rank),
             second = axis_of(call.integer("dim2"), rank);
  if (!type || !offset || !first || !second || *first == *second) return kNotThis;
  Dims& dims = call.dims();
  const auto rows = dims.value(type->shape[*first]), columns = dims.value(type->shape[*second]);
  if (!rows || !columns) return kNotThis;
  const std::int64_t count =
      *offset >= 0 ? std::min(*rows, *columns - *offset) : std::min(*rows + *offset, *columns);
  if (count < 1) return kNotThis;
  const std::int64_t start = *offset >= 0 ? *offset : -*offset * *columns;
  std::vector<std::size_t> order;
  Shape flat;
  for (std::size_t i = 0; i < rank; ++i) {
    if (i == *first || i == *second) continue;
    order.push_back(i);
    flat.push_back(type->shape[i]);
  }
  order.insert(order.end(), {*first, *second});
  flat.push_back(dims.constant(*rows * *columns));
  Maker make(call.emitter, call.site);
  const ValueId joined = make("reshape", {in_order(make, *x, order)}, {{"shape", std::move(flat)}});
  return make.done(make("slice", {joined},
                        {{"dim", static_cast<std::int64_t>(rank - 2)},
                         {"start", start},
                         {"end", start + (count - 1) * (*columns + 1) + 1},
                         {"step", *columns + 1}},
                        call.wanted));
}

// ---- reductions

std::optional<std::vector<std::size_t>> listed_axes(Emitter& emitter, const Value* dim,
                                                    std::size_t rank) {
  std::vector<std::size_t> out;
  std::optional<Shape> listed = dim ? as_shape(*dim) : std::nullopt;
  if (!listed && dim && dim->kind != Value::Kind::none) return std::nullopt;
  for (DimId d : listed.value_or(Shape())) {
    std::optional<std::size_t> axis = axis_of(emitter.dims().value(d), rank);
    if (!axis || std::ranges::find(out, *axis) != out.end()) return std::nullopt;
    out.push_back(*axis);
  }
  for (std::size_t i = 0; i < rank && (!listed || listed->empty()); ++i) out.push_back(i);
  std::sort(out.rbegin(), out.rend());
  return out;
}

// any over several axes. Of u8 it is u8 in PyTorch, and of an empty list it is not all axes.
Applied convert_any_of_axes(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  const Value* dim = call.find("dim");
  std::optional<Shape> listed = dim ? as_shape(*dim) : std::nullopt;
  if (!type || type->dtype == DType::u8 || type->shape.empty() || (listed && listed->empty()))
    return kNotThis;
  return convert_reduce(call);
}

// Computes the squared deviations from the mean, and the mean if requested; bf16 and f16 in f32.
Applied convert_variance(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  const Value* keep = call.find("keepdim");
  const std::optional<double> less = correction_of(call.dims(), call.bound);
  const auto axes =
      type ? listed_axes(call.emitter, call.find("dim"), type->shape.size()) : std::nullopt;
  if (!axes || !less || !is_float(type->dtype) || !keep || keep->kind != Value::Kind::boolean)
    return kNotThis;
  Shape shape = type->shape;
  DimId count = call.dims().constant(1);
  for (std::size_t axis : *axes) {
    count = count.valid() ? call.dims().mul(count, shape[axis]) : count;
    shape[axis] = call.dims().constant(1);
    if (!keep->boolean) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  if (!count.valid()) return kNotThis;
  const DType dtype = type->dtype;
  const bool narrow = dtype != DType::f32 && dtype != DType::f64;
  Maker make(call.emitter, call.site);
  const auto over_axes = [&](std::string_view op, ValueId v) {
    for (std::size_t axis : *axes)
      v = make(op, {v}, {{"dim", static_cast<std::int64_t>(axis)}, {"keepdim", true}});
    return v;
  };
  const bool deviation = call.bound.mapping->target.starts_with("aten.std");
  const auto result = [&](ValueId v, std::size_t i) {
    if (deviation) v = make("sqrt", {v}, {});
    if (narrow) v = make("cast", {v}, {{"dtype", dtype}});
    return make("reshape", {v}, {{"shape", shape}}, {call.name_of(i)});
  };
  const ValueId h = narrow ? make("cast", {*x}, {{"dtype", DType::f32}}) : *x;
  const ValueId mean = over_axes("mean", h);
  const ValueId off = make("sub", {h, mean}, {});
  const ValueId squares = make("mul", {off, off}, {});
  const ValueId moment = *less == 0
                             ? over_axes("mean", squares)
                             : make("div",
                                    {over_axes("sum", squares),
                                     divisor(make, count, *less, narrow ? DType::f32 : dtype)},
                                    {});
  const ValueId first = result(moment, 0);
  if (call.bound.mapping->convert != convert_var_mean) return make.done(first);
  Applied out = make.done(result(mean, 1));
  if (out) (*out)->insert((*out)->begin(), first);
  return out;
}

std::optional<Shape> of_each_axis(Emitter& emitter, const Value* given, std::size_t axes,
                                  std::int64_t otherwise) {
  if (!given || given->kind == Value::Kind::none)
    return Shape(axes, emitter.dims().constant(otherwise));
  const std::optional<Shape> shape = as_shape(*given);
  if (!shape || (shape->size() != axes && shape->size() != 1)) return std::nullopt;
  return shape->size() == axes ? *shape : Shape(axes, shape->front());
}

// Handles conv1d, conv2d, conv3d. Omitted arguments are one, or no padding; a number applies to
// each axis; a padding may be "valid", meaning none, or "same".
Applied convert_convolution(const KnownCall& call) {
  std::optional<ValueId> x = tensor_of(call.find("input"));
  const auto [w, type] = call.tensor("weight");
  if (!x || !type || type->shape.size() < 3) return kNotThis;
  const std::size_t axes = type->shape.size() - 2;
  const auto of_axes = [&](const Value* given, std::int64_t otherwise) {
    return of_each_axis(call.emitter, given, axes, otherwise);
  };
  const Value* padding = call.find("padding");
  const bool named = padding && padding->kind == Value::Kind::string;
  if (named && padding->text != "same" && padding->text != "valid") return kNotThis;
  const auto stride = of_axes(call.find("stride"), 1), dilation = of_axes(call.find("dilation"), 1),
             pads = of_axes(named ? nullptr : padding, 0);
  const Value* groups = call.find("groups");
  const std::optional<std::int64_t> count = groups ? as_int(call.dims(), *groups) : std::nullopt;
  if (!stride || !dilation || !pads || (groups && !count)) return kNotThis;
  Shape around = *pads;
  Maker make(call.emitter, call.site);
  if (named && padding->text == "same") {
    const auto same =
        same_pads(call.dims(), Shape(type->shape.begin() + 2, type->shape.end()), *dilation);
    if (!same) return kNotThis;
    const bool even = std::all_of(same->begin(), same->end(),
                                  [](const auto& pair) { return pair.first == pair.second; });
    for (std::size_t i = 0; i < axes && even; ++i) around[i] = (*same)[axes - 1 - i].first;
    if (!even) x = padded(make, *x, *same, 0.0);
    if (!x) return kNotThis;
  }
  NamedAttributes attributes = {{"stride", *stride},
                                {"padding", around},
                                {"dilation", *dilation},
                                {"groups", count.value_or(1)}};
  const std::optional<ValueId> bias = tensor_of(call.find("bias"));
  return make.done(
      make("convolution", {*x, *w, bias.value_or(ValueId())}, attributes, call.wanted));
}

}  // namespace pw::fx
