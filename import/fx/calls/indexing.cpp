#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "import/fx/calls/apply.hpp"

namespace pw::fx {
namespace {

struct Chosen {
  std::vector<std::size_t> axes;   ///< that are indexed
  std::vector<ValueId> indices;    ///< of each
  std::vector<std::size_t> order;  ///< the axes, and then the others
  bool together = false;           ///< the axes are adjacent
};

/// Returns true for PyTorch's index dtypes, i32 and i64.
bool is_index(DType dtype) { return dtype == DType::i32 || dtype == DType::i64; }

std::string_view reduction_of(std::string_view target, const Value* how) {
  if (target == "aten.scatter_add") return "sum";
  if (target != "aten.scatter_reduce.two") return "set";
  static constexpr std::array kKnown{"sum", "prod", "amax", "amin", "mean"};
  if (!how || how->kind != Value::Kind::string) return {};
  const auto known = std::ranges::find(kKnown, how->text);
  return known == kKnown.end() ? std::string_view() : *known;
}

// Returns the tensors among the indices, as i64, with their axes; nothing if another kind of index
// occurs.
std::optional<Chosen> chosen_axes(Maker& make, const Value* indices, std::size_t rank) {
  Emitter& emitter = make.emitter();
  if (!indices || indices->kind != Value::Kind::list || indices->items.size() > rank)
    return std::nullopt;
  Chosen out;
  for (std::size_t i = 0; i < indices->items.size(); ++i) {
    const Value& item = indices->items[i];
    if (item.kind == Value::Kind::none) continue;
    const Type* type = item.kind == Value::Kind::tensor ? emitter.type_of(item.tensor) : nullptr;
    if (!type || !is_index(type->dtype)) return std::nullopt;
    out.axes.push_back(i);
    out.indices.push_back(type->dtype == DType::i64
                              ? item.tensor
                              : make("cast", {item.tensor}, {{"dtype", DType::i64}}));
  }
  if (out.axes.empty()) return std::nullopt;
  out.together = out.axes.back() - out.axes.front() + 1 == out.axes.size();
  out.order = out.axes;
  for (std::size_t i = 0; i < rank; ++i)
    if (std::ranges::find(out.axes, i) == out.axes.end()) out.order.push_back(i);
  return out;
}

NamedAttributes index_attributes(const Chosen& chosen) {
  const std::size_t first = chosen.together ? chosen.axes.front() : 0;
  return {{"dim", static_cast<std::int64_t>(first)}, {"wrap", true}};
}

// x[mask] = values, where one value goes to every place of the mask: a choice by the mask.
Applied put_masked(const KnownCall& call) {
  const Value* indices = call.find("indices");
  const ValueId x = call.find("self")->tensor, values = call.find("values")->tensor;
  if (indices->kind != Value::Kind::list || indices->items.size() != 1) return kNotThis;
  const auto [mask, masked] = typed_tensor(call.emitter, &indices->items[0]);
  const Shape shape = call.type_of(x)->shape, given = call.type_of(values)->shape;
  if (!masked || masked->dtype != DType::b8 || masked->shape.size() > shape.size() ||
      !std::equal(masked->shape.begin(), masked->shape.end(), shape.begin()) ||
      given.size() > shape.size() - masked->shape.size())
    return kNotThis;
  Shape wide = masked->shape;
  wide.resize(shape.size(), call.dims().constant(1));
  Maker make(call.emitter, call.site);
  const ValueId where = make("reshape", {*mask}, {{"shape", std::move(wide)}});
  return make.done(make("select", {where, values, x}, {}, call.wanted));
}

// The indices of all axes: `index` of one, and its own place of the others.
std::vector<ValueId> places_along(Maker& make, ValueId index, std::size_t axis) {
  Emitter& emitter = make.emitter();
  const Type type = *emitter.type_of(index);
  std::vector<ValueId> out;
  for (std::size_t i = 0; i < type.shape.size(); ++i) {
    if (i == axis) {
      const bool as_it_is = type.dtype == DType::i64;
      out.push_back(as_it_is ? index : make("cast", {index}, {{"dtype", DType::i64}}));
      continue;
    }
    Shape along(type.shape.size() - i, emitter.dims().constant(1));
    along.front() = type.shape[i];
    const ValueId places = make("iota", {}, {{"shape", Shape{type.shape[i]}}});
    out.push_back(make("reshape", {places}, {{"shape", std::move(along)}}));
  }
  return out;
}

// The axis, where self and index are of the same rank, which is not 0.
std::optional<std::size_t> indexed_axis(Emitter& emitter, const Bound& bound) {
  std::optional<ValueId> x = tensor_of(bound.find("self")), index = tensor_of(bound.find("index"));
  const Type *type = x ? emitter.type_of(*x) : nullptr,
             *at = index ? emitter.type_of(*index) : nullptr;
  if (!type || !at || !is_index(at->dtype) || at->shape.size() != type->shape.size())
    return std::nullopt;
  return axis_of(as_int(emitter.dims(), *bound.find("dim")), type->shape.size());
}

// Returns the part of the source that has the index's shape; a number in self's dtype. Nothing if
// it is smaller, or of another dtype.
std::optional<ValueId> scattered_source(Maker& make, const Bound& bound) {
  Emitter& emitter = make.emitter();
  const Type x = *emitter.type_of(bound.find("self")->tensor);
  const Shape wanted = emitter.type_of(bound.find("index")->tensor)->shape;
  const Value* src = bound.find("src");
  if (src && src->kind != Value::Kind::tensor) {
    std::optional<Attribute> number = fill_of(emitter.dims(), *src, x.dtype);
    if (!number || (src->kind == Value::Kind::real && !is_float(x.dtype))) return std::nullopt;
    return make("full", {}, {{"shape", Shape()}, {"dtype", x.dtype}, {"value", *number}});
  }
  const Type* given = src ? emitter.type_of(src->tensor) : nullptr;
  if (!given || given->dtype != x.dtype || given->shape.size() != wanted.size())
    return std::nullopt;
  const Shape from = given->shape;
  ValueId out = src->tensor;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (from[i] == wanted[i]) continue;
    const auto has = emitter.dims().value(from[i]), wants = emitter.dims().value(wanted[i]);
    if (!has || !wants || *has < *wants) return std::nullopt;
    out =
        make("slice", {out},
             {{"dim", static_cast<std::int64_t>(i)}, {"start", std::int64_t{0}}, {"end", *wants}});
  }
  return out;
}

ValueId put_at(Maker& make, ValueId x, ValueId values, const std::vector<ValueId>& places,
               std::string_view how, const Outputs& names) {
  std::vector<ValueId> operands = {x, values};
  operands.insert(operands.end(), places.begin(), places.end());
  return make("index_put", operands, {{"reduce", std::string(how)}}, names);
}

// x with something that changes nothing at the places that are written: a neutral number, or, for
// extremes, one of the elements themselves.
ValueId without_self(Maker& make, ValueId x, ValueId src, const std::vector<ValueId>& places,
                     std::string_view how) {
  Emitter& emitter = make.emitter();
  if (how == "amax" || how == "amin") return put_at(make, x, src, places, "set", kUnnamed);
  const ValueId neutral = make("full", {},
                               {{"shape", Shape()},
                                {"dtype", emitter.type_of(x)->dtype},
                                {"value", how == "prod" ? 1.0 : 0.0}});
  return put_at(make, x, neutral, places, "set", kUnnamed);
}

// The sum by the number of elements, of f32 and f64.
Applied scatter_mean(Maker& make, ValueId x, ValueId src, const std::vector<ValueId>& places,
                     bool alone, const Outputs& wanted) {
  Emitter& emitter = make.emitter();
  const Type type = *emitter.type_of(x);
  if (type.dtype != DType::f32 && type.dtype != DType::f64) return kNotThis;
  const auto number = [&](Shape shape, double value) {
    return make("full", {}, {{"shape", std::move(shape)}, {"dtype", type.dtype}, {"value", value}});
  };
  const ValueId from = alone ? without_self(make, x, src, places, "sum") : x;
  const ValueId sum = put_at(make, from, src, places, "sum", kUnnamed);
  const ValueId counts =
      put_at(make, number(type.shape, alone ? 0 : 1), number({}, 1), places, "sum", kUnnamed);
  const ValueId by = make("maximum", {counts, number({}, 1)}, {});
  return make.done(make("div", {sum, by}, {}, wanted));
}

}  // namespace

ValueId in_order(Maker& make, ValueId x, const std::vector<std::size_t>& to) {
  std::vector<std::size_t> now(to.size());
  std::iota(now.begin(), now.end(), std::size_t{0});
  for (std::size_t i = 0; i < to.size(); ++i) {
    const auto j = static_cast<std::size_t>(std::ranges::find(now, to[i]) - now.begin());
    if (j == i) continue;
    std::swap(now[i], now[j]);
    x = make("transpose", {x},
             {{"dim0", static_cast<std::int64_t>(i)}, {"dim1", static_cast<std::int64_t>(j)}});
  }
  return x;
}

// ---- x[i, :, j]

// Where the indexed axes do not stand together, they come first, and so does what they choose.
Applied convert_index(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  if (!type) return kNotThis;
  Maker make(call.emitter, call.site);
  std::optional<Chosen> chosen = chosen_axes(make, call.find("indices"), type->shape.size());
  if (!chosen) return kNotThis;
  std::vector<ValueId> operands = {chosen->together ? *x : in_order(make, *x, chosen->order)};
  operands.insert(operands.end(), chosen->indices.begin(), chosen->indices.end());
  return make.done(make("index", operands, index_attributes(*chosen), call.wanted));
}

Applied convert_index_put(const KnownCall& call) {
  std::optional<ValueId> x = tensor_of(call.find("self")), values = tensor_of(call.find("values"));
  const Type *type = x ? call.type_of(*x) : nullptr,
             *given = values ? call.type_of(*values) : nullptr;
  const Value *indices = call.find("indices"), *accumulate = call.find("accumulate");
  if (!type || !given || given->dtype != type->dtype || !accumulate ||
      accumulate->kind != Value::Kind::boolean)
    return kNotThis;
  Maker make(call.emitter, call.site);
  std::optional<Chosen> chosen = chosen_axes(make, indices, type->shape.size());
  if (!chosen) return accumulate->boolean ? kNotThis : put_masked(call);
  NamedAttributes attributes = index_attributes(*chosen);
  attributes.emplace_back("reduce", std::string(accumulate->boolean ? "sum" : "set"));
  std::vector<ValueId> operands = {chosen->together ? *x : in_order(make, *x, chosen->order),
                                   *values};
  operands.insert(operands.end(), chosen->indices.begin(), chosen->indices.end());
  if (chosen->together) return make.done(make("index_put", operands, attributes, call.wanted));
  const ValueId put = make("index_put", operands, attributes);
  std::vector<std::size_t> back(chosen->order.size());
  for (std::size_t i = 0; i < back.size(); ++i) back[chosen->order[i]] = i;
  return make.done(make("detach", {in_order(make, put, back)}, {}, call.wanted));
}

// ---- by an index for each element, along one axis

Applied convert_gather(const KnownCall& call) {
  const std::optional<std::size_t> axis = indexed_axis(call.emitter, call.bound);
  if (!axis) return kNotThis;
  Maker make(call.emitter, call.site);
  std::vector<ValueId> operands = places_along(make, call.find("index")->tensor, *axis);
  operands.insert(operands.begin(), call.find("self")->tensor);
  return make.done(make("index", operands, {}, call.wanted));
}

Applied convert_scatter(const KnownCall& call) {
  const std::optional<std::size_t> axis = indexed_axis(call.emitter, call.bound);
  const std::string_view how = reduction_of(call.bound.mapping->target, call.find("reduce"));
  if (!axis || how.empty()) return kNotThis;
  Maker make(call.emitter, call.site);
  const std::optional<ValueId> src = scattered_source(make, call.bound);
  if (!src) return kNotThis;
  const ValueId x = call.find("self")->tensor;
  const std::vector<ValueId> places = places_along(make, call.find("index")->tensor, *axis);
  const Value* include = call.find("include_self");
  const bool alone = include && include->kind == Value::Kind::boolean && !include->boolean;
  if (how == "mean") return scatter_mean(make, x, *src, places, alone, call.wanted);
  const ValueId from = alone ? without_self(make, x, *src, places, how) : x;
  return make.done(put_at(make, from, *src, places, how, call.wanted));
}

// ---- flip

ValueId flipped(Maker& make, ValueId x, DimId extent, std::size_t axis) {
  const ValueId places = make("iota", {}, {{"shape", Shape{extent}}});
  return make("index", {x, make("bitwise_not", {places}, {})},
              {{"dim", static_cast<std::int64_t>(axis)}, {"wrap", true}});
}

Applied convert_flip(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  std::optional<Shape> listed = as_shape(*call.find("dims"));
  if (!type || !listed) return kNotThis;
  const Shape shape = type->shape;
  Maker make(call.emitter, call.site);
  std::set<std::size_t> axes;
  ValueId out = *x;
  for (DimId d : *listed) {
    std::optional<std::size_t> axis = axis_of(call.dims().value(d), shape.size());
    if (!axis || !axes.insert(*axis).second) return kNotThis;
    out = flipped(make, out, shape[*axis], *axis);
  }
  return make.done(make("detach", {out}, {}, call.wanted));
}

}  // namespace pw::fx
