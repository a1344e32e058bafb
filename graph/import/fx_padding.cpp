// Exports the part of Converter for targets that make, repeat and pad axes: arange, repeat, the
// pads, diagonal, var, conv1d to conv3d.
#include <algorithm>
#include <cmath>

#include "graph/import/fx_apply.hpp"
#include "graph/type_text.hpp"

namespace pw::fx {
namespace {

std::optional<double> number_of(const Dims& dims, const Value& value) {
  if (value.kind == Value::Kind::real) return value.real;
  if (value.kind != Value::Kind::integer) return std::nullopt;
  const std::optional<std::int64_t> whole = dims.value(value.dim);
  return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

}  // namespace

// ---- arange

// Of whole numbers i64, of others f32, unless a dtype is named.
Applied Converter::arange(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  const Value zero = integer(0), one = integer(1);
  const Value& start = bound.find("start") ? *bound.find("start") : zero;
  const Value& step = bound.find("step") ? *bound.find("step") : one;
  const Value& end = *bound.find("end");
  const Value* dtype = bound.find("dtype");
  const bool whole = start.kind == Value::Kind::integer && end.kind == Value::Kind::integer &&
                     step.kind == Value::Kind::integer;
  if (dtype && dtype->kind != Value::Kind::dtype && dtype->kind != Value::Kind::none)
    return kNotThis;
  DType to = whole ? DType::i64 : DType::f32;
  if (dtype && dtype->kind == Value::Kind::dtype) to = dtype->dtype;
  Maker make = maker(site);
  const bool plain = whole && to == DType::i64 && context_.dims.value(start.dim) == 0 &&
                     context_.dims.value(step.dim) == 1;
  if (plain && context_.dims.value(end.dim).value_or(0) >= 0) {
    const ValueId made = make("iota", {}, {{key("shape"), Shape{end.dim}}}, wanted);
    if (made.valid()) once(), makers_.insert(made);  // its literal may be a count
    return make.done(made);
  }
  const bool narrow = to != DType::f32 && to != DType::f64;
  const DType made = whole ? DType::i64 : narrow ? DType::f32 : DType::f64;
  if (!whole && !is_float(to)) return kNotThis;
  std::optional<ValueId> values = whole ? whole_range(make, start.dim, end.dim, step.dim, site)
                                        : real_range(make, start, end, step, made, site);
  if (!values) return kNotThis;
  if (made != to) return make.done(make("cast", {*values}, {{key("dtype"), to}}, wanted));
  return make.done(make("detach", {*values}, {}, wanted));
}

// In i64; a start that is a symbol is the beginning of a slice.
std::optional<ValueId> Converter::whole_range(Maker& make, DimId start, DimId end, DimId step,
                                              const Site& site) {
  Dims& dims = context_.dims;
  const std::optional<std::int64_t> first = dims.value(start), by = dims.value(step);
  const auto fits = [](std::int64_t v) { return v > -kMaxDim && v < kMaxDim; };
  if (!by || *by == 0 || !fits(*by) || (!first && *by != 1) || (first && !fits(*first)))
    return std::nullopt;
  DimId count = *by > 0 ? dims.sub(end, start) : dims.sub(start, end);
  const std::int64_t stride = std::abs(*by);
  count = count.valid()
              ? dims.div(dims.add(count, dims.constant(stride - 1)), dims.constant(stride))
              : count;
  if (!count.valid()) return std::nullopt;
  if (dims.value(count).value_or(0) < 0) return std::nullopt;
  const auto iota = [&](DimId extent) { return make("iota", {}, {{key("shape"), Shape{extent}}}); };
  if (!first)
    return make("slice", {iota(end)},
                {{key("dim"), std::int64_t{0}},
                 {key("start"), bound_of(dims, start)},
                 {key("end"), bound_of(dims, end)}});
  ValueId out = iota(count);
  const std::optional<ValueId> factor = as_operand(integer(*by), site),
                               offset = as_operand(integer(*first), site);
  if (!factor || !offset) return std::nullopt;
  if (*by != 1) out = make("mul", {out, *factor}, {});
  if (*first != 0) out = make("add", {out, *offset}, {});
  return out;
}

// start + i * step, of bf16 and f16 in f32, else in f64.
std::optional<ValueId> Converter::real_range(Maker& make, const Value& start, const Value& end,
                                             const Value& step, DType dtype, const Site& site) {
  const std::optional<double> first = number_of(context_.dims, start),
                              last = number_of(context_.dims, end),
                              by = number_of(context_.dims, step);
  if (!first || !last || !by || *by == 0) return std::nullopt;
  const double count = std::ceil((*last - *first) / *by);
  if (!(count >= 0 && count < static_cast<double>(kMaxDim))) return std::nullopt;
  const DimId extent = context_.dims.constant(static_cast<std::int64_t>(count));
  Value factor, offset;
  factor.kind = offset.kind = Value::Kind::real;
  factor.real = *by;
  offset.real = *first;
  const std::optional<ValueId> f = as_operand(factor, site), o = as_operand(offset, site);
  if (!f || !o) return std::nullopt;
  const ValueId places = make("iota", {}, {{key("shape"), Shape{extent}}, {key("dtype"), dtype}});
  return make("add", {make("mul", {places, *f}, {}), *o}, {});
}

// ---- repeat

// Each axis behind one of its repetitions, and both as one.
Applied Converter::repeat(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Type* type = x ? type_of(*x) : nullptr;
  std::optional<Shape> times = as_shape(*bound.find("repeats"));
  if (!type || !times || times->size() < type->shape.size()) return kNotThis;
  Dims& dims = context_.dims;
  const DimId one = dims.constant(1);
  const std::size_t lead = times->size() - type->shape.size();
  Shape apart, spread, joined;
  for (std::size_t i = 0; i < times->size(); ++i) {
    const DimId extent = i < lead ? one : type->shape[i - lead];
    apart.insert(apart.end(), {one, extent});
    spread.insert(spread.end(), {(*times)[i], extent});
    joined.push_back(dims.mul((*times)[i], extent));
    if (!joined.back().valid() || dims.value((*times)[i]).value_or(0) < 0) return kNotThis;
  }
  Maker make = maker(site);
  const ValueId wide = make("reshape", {*x}, {{key("shape"), std::move(apart)}});
  const ValueId all = make("expand", {wide}, {{key("shape"), std::move(spread)}});
  return make.done(make("reshape", {all}, {{key("shape"), std::move(joined)}}, wanted));
}

// ---- pads

// By axis, the last one first: how many elements are added before and behind. Nothing: not known.
std::optional<std::vector<std::pair<std::int64_t, std::int64_t>>> Converter::pads_of(
    const Value* list, std::size_t rank) const {
  std::optional<Shape> given = list ? as_shape(*list) : std::nullopt;
  if (!given || given->size() % 2 != 0 || given->size() / 2 > rank) return std::nullopt;
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  for (std::size_t i = 0; i < given->size(); i += 2) {
    const auto before = context_.dims.value((*given)[i]),
               behind = context_.dims.value((*given)[i + 1]);
    if (!before || !behind) return std::nullopt;
    out.emplace_back(*before, *behind);
  }
  return out;
}

ValueId Converter::part_of_axis(Maker& make, ValueId x, std::size_t axis, DimId start, DimId end) {
  return make("slice", {x},
              {{key("dim"), static_cast<std::int64_t>(axis)},
               {key("start"), bound_of(context_.dims, start)},
               {key("end"), bound_of(context_.dims, end)}});
}

// Elements of one value around x; less than none cuts them off.
Applied Converter::pad(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Type* type = x ? type_of(*x) : nullptr;
  const Value& value = *bound.find("value");
  std::optional<Attribute> number = as_attribute(value, AttributeKind::float_);
  if (!type || !number || (value.kind == Value::Kind::real && !is_float(type->dtype)))
    return kNotThis;
  const auto pads = pads_of(bound.find("pad"), type->shape.size());
  if (!pads) return kNotThis;
  Dims& dims = context_.dims;
  Shape shape = type->shape;
  const DType dtype = type->dtype;
  Maker make = maker(site);
  ValueId out = *x;
  for (std::size_t k = 0; k < pads->size(); ++k) {
    const std::size_t axis = shape.size() - 1 - k;
    const auto [before, behind] = (*pads)[k];
    const std::int64_t cut = std::max<std::int64_t>(0, -before),
                       end = std::min<std::int64_t>(0, behind);
    const auto extent = dims.value(shape[axis]);
    if (cut != 0 || end != 0) {
      if (!extent || *extent + end < cut) return kNotThis;
      out = part_of_axis(make, out, axis, dims.constant(cut), dims.constant(*extent + end));
      shape[axis] = dims.constant(*extent + end - cut);
    }
    const auto filled = [&](std::int64_t count) {
      Shape part = shape;
      part[axis] = dims.constant(count);
      return make("full", {},
                  {{key("shape"), part}, {key("dtype"), dtype}, {key("value"), *number}});
    };
    std::vector<ValueId> parts = {out};
    if (before > 0) parts.insert(parts.begin(), filled(before));
    if (behind > 0) parts.push_back(filled(behind));
    if (parts.size() == 1) continue;
    out = make("cat", parts, {{key("dim"), static_cast<std::int64_t>(axis)}});
    shape[axis] = dims.add(shape[axis], dims.constant(std::max<std::int64_t>(before, 0) +
                                                      std::max<std::int64_t>(behind, 0)));
  }
  return make.done(make(out == *x ? "clone" : "detach", {out}, {}, wanted));
}

// Elements of x's own around it: the outermost one, or those beside it mirrored.
Applied Converter::pad_edges(const Bound& bound, const std::vector<Wanted>& wanted,
                             const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Type* type = x ? type_of(*x) : nullptr;
  const auto pads = type ? pads_of(bound.find("padding"), type->shape.size()) : std::nullopt;
  if (!pads) return kNotThis;
  const bool mirror = bound.mapping->target.find("reflection") != std::string_view::npos;
  Dims& dims = context_.dims;
  Shape shape = type->shape;
  Maker make = maker(site);
  ValueId out = *x;
  for (std::size_t k = 0; k < pads->size(); ++k) {
    const std::size_t axis = shape.size() - 1 - k;
    const auto [before, behind] = (*pads)[k];
    const DimId whole = shape[axis];
    const auto extent = dims.value(whole);
    const std::int64_t most = extent ? *extent - (mirror ? 1 : 0) : 0;
    if (!extent || *extent < 1 || before < 0 || behind < 0) return kNotThis;
    if (mirror && (before > most || behind > most)) return kNotThis;
    const auto edge = [&](std::int64_t count, std::int64_t start) {
      if (mirror)
        return flipped(
            make, part_of_axis(make, out, axis, dims.constant(start), dims.constant(start + count)),
            dims.constant(count), axis);
      Shape wide = shape;
      wide[axis] = dims.constant(count);
      return make("expand",
                  {part_of_axis(make, out, axis, dims.constant(start), dims.constant(start + 1))},
                  {{key("shape"), std::move(wide)}});
    };
    std::vector<ValueId> parts = {out};
    if (before > 0) parts.insert(parts.begin(), edge(before, mirror ? 1 : 0));
    if (behind > 0) parts.push_back(edge(behind, mirror ? *extent - 1 - behind : *extent - 1));
    if (parts.size() == 1) continue;
    out = make("cat", parts, {{key("dim"), static_cast<std::int64_t>(axis)}});
    shape[axis] = dims.constant(*extent + before + behind);
  }
  return make.done(make(out == *x ? "clone" : "detach", {out}, {}, wanted));
}

// ---- diagonal

// Of the two axes as one, every element that is one row and one column further: a view.
Applied Converter::diagonal(const Bound& bound, const std::vector<Wanted>& wanted,
                            const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Type* type = x ? type_of(*x) : nullptr;
  const std::size_t rank = type ? type->shape.size() : 0;
  const auto offset = as_int(*bound.find("offset"));
  const auto first = axis_of(as_int(*bound.find("dim1")), rank),
             second = axis_of(as_int(*bound.find("dim2")), rank);
  if (!type || !offset || !first || !second || *first == *second) return kNotThis;
  Dims& dims = context_.dims;
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
  Maker make = maker(site);
  const ValueId joined =
      make("reshape", {in_order(make, *x, order)}, {{key("shape"), std::move(flat)}});
  return make.done(make("slice", {joined},
                        {{key("dim"), static_cast<std::int64_t>(rank - 2)},
                         {key("start"), start},
                         {key("end"), start + (count - 1) * (*columns + 1) + 1},
                         {key("step"), *columns + 1}},
                        wanted));
}

// ---- reductions

// The listed axes, or all; the last one first. Nothing: one is not there, or twice.
std::optional<std::vector<std::size_t>> Converter::listed_axes(const Value* dim,
                                                               std::size_t rank) const {
  std::vector<std::size_t> out;
  std::optional<Shape> listed = dim ? as_shape(*dim) : std::nullopt;
  if (!listed && dim && dim->kind != Value::Kind::none) return std::nullopt;
  for (DimId d : listed.value_or(Shape())) {
    std::optional<std::size_t> axis = axis_of(context_.dims.value(d), rank);
    if (!axis || std::find(out.begin(), out.end(), *axis) != out.end()) return std::nullopt;
    out.push_back(*axis);
  }
  for (std::size_t i = 0; i < rank && (!listed || listed->empty()); ++i) out.push_back(i);
  std::sort(out.rbegin(), out.rend());
  return out;
}

// any over several axes. Of u8 it is u8 in PyTorch, and of an empty list it is not all axes.
Applied Converter::any_of_axes(const Bound& bound, const std::vector<Wanted>& wanted,
                               const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Type* type = x ? type_of(*x) : nullptr;
  const Value* dim = bound.find("dim");
  std::optional<Shape> listed = dim ? as_shape(*dim) : std::nullopt;
  if (!type || type->dtype == DType::u8 || type->shape.empty() || (listed && listed->empty()))
    return kNotThis;
  return reduce(bound, wanted, site);
}

// How many elements a moment divides by: their number less the correction, not less than 0.
ValueId Converter::divisor(Maker& make, DimId count, double less, DType dtype) {
  const auto number = [&](double value) {
    return make("full", {},
                {{key("shape"), Shape()}, {key("dtype"), dtype}, {key("value"), value}});
  };
  if (const auto known = context_.dims.value(count))
    return number(std::max(0.0, static_cast<double>(*known) - less));
  const ValueId all =
      make("cast", {make("extent", {}, {{key("value"), count}})}, {{key("dtype"), dtype}});
  return make("maximum", {make("sub", {all, number(less)}, {}), number(0)}, {});
}

// 1 unless it is stated; nothing: it is no number.
std::optional<double> Converter::correction_of(const Bound& bound) const {
  if (const Value* unbiased = bound.find("unbiased")) return unbiased->boolean ? 1 : 0;
  const Value* given = bound.find("correction");
  if (!given || given->kind == Value::Kind::none) return 1;
  return number_of(context_.dims, *given);
}

// The squares of what is left without the mean, and the mean where it is asked for; bf16 and f16
// in f32.
Applied Converter::variance(const Bound& bound, const std::vector<Wanted>& wanted,
                            const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Type* type = x ? type_of(*x) : nullptr;
  const Value* keep = bound.find("keepdim");
  const std::optional<double> less = correction_of(bound);
  const auto axes = type ? listed_axes(bound.find("dim"), type->shape.size()) : std::nullopt;
  if (!axes || !less || !is_float(type->dtype) || !keep || keep->kind != Value::Kind::boolean)
    return kNotThis;
  Shape shape = type->shape;
  DimId count = context_.dims.constant(1);
  for (std::size_t axis : *axes) {
    count = count.valid() ? context_.dims.mul(count, shape[axis]) : count;
    shape[axis] = context_.dims.constant(1);
    if (!keep->boolean) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  if (!count.valid()) return kNotThis;
  const DType dtype = type->dtype;
  const bool narrow = dtype != DType::f32 && dtype != DType::f64;
  Maker make = maker(site);
  const auto over_axes = [&](std::string_view op, ValueId v) {
    for (std::size_t axis : *axes)
      v = make(op, {v}, {{key("dim"), static_cast<std::int64_t>(axis)}, {key("keepdim"), true}});
    return v;
  };
  const auto result = [&](ValueId v, std::size_t i) {
    if (narrow) v = make("cast", {v}, {{key("dtype"), dtype}});
    return make("reshape", {v}, {{key("shape"), shape}},
                {i < wanted.size() ? wanted[i] : Wanted()});
  };
  const ValueId h = narrow ? make("cast", {*x}, {{key("dtype"), DType::f32}}) : *x;
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
  if (bound.mapping->special != Special::var_mean) return make.done(first);
  Applied out = make.done(result(mean, 1));
  if (out) (*out)->insert((*out)->begin(), first);
  return out;
}

// conv1d, conv2d, conv3d: what they leave unsaid is one, or no padding; a number is that of each
// axis.
Applied Converter::convolution(const Bound& bound, const std::vector<Wanted>& wanted,
                               const Site& site) {
  const std::optional<ValueId> x = tensor_of(bound.find("input")),
                               w = tensor_of(bound.find("weight"));
  const Type* type = w ? type_of(*w) : nullptr;
  if (!x || !type || type->shape.size() < 3) return kNotThis;
  const std::size_t axes = type->shape.size() - 2;
  AttributeList attributes;
  const std::pair<const char*, std::int64_t> lists[] = {
      {"stride", 1}, {"padding", 0}, {"dilation", 1}};
  for (const auto& [name, otherwise] : lists) {
    const Value* given = bound.find(name);
    Shape list(axes, context_.dims.constant(otherwise));
    if (given && given->kind != Value::Kind::none) {
      std::optional<Shape> said = as_shape(*given);
      if (const auto one = as_int(*given); !said && one) said = Shape{context_.dims.constant(*one)};
      if (!said || (said->size() != axes && said->size() != 1)) return kNotThis;
      list = said->size() == axes ? *said : Shape(axes, said->front());
    }
    attributes.push_back({key(name), list});
  }
  const Value* groups = bound.find("groups");
  const std::optional<std::int64_t> count = groups ? as_int(*groups) : std::nullopt;
  if (groups && !count) return kNotThis;
  attributes.push_back({key("groups"), count.value_or(1)});
  const std::optional<ValueId> bias = tensor_of(bound.find("bias"));
  return some(
      emit("convolution", {*x, *w, bias.value_or(ValueId())}, std::move(attributes), wanted, site));
}

}  // namespace pw::fx
