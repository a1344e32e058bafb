// Exports the part of Converter for what PyTorch does with types: whole numbers in ops of floats,
// numbers beside tensors, sums, lists of several types.
#include <algorithm>
#include <iterator>

#include "graph/import/fx_convert.hpp"

namespace pw::fx {
namespace {

const std::optional<Results> kNotThis;

std::optional<ValueId> tensor_of(const Value* value) {
  if (!value || value->kind != Value::Kind::tensor) return std::nullopt;
  return value->tensor;
}

bool is_one(const Value* value, Context& context) {
  if (!value) return true;
  if (value->kind == Value::Kind::integer) return context.dims.value(value->dim) == 1;
  return value->kind == Value::Kind::real && value->real == 1;
}

Applied some(Result<Results> results) {
  if (!results) return forward(results);
  return std::optional(std::move(*results));
}

// Negative: there is no such axis.
std::int64_t axis_of(std::optional<std::int64_t> given, std::size_t rank) {
  auto r = static_cast<std::int64_t>(rank);
  std::int64_t axis = given.value_or(r);
  if (axis < -r || axis >= r) return -1;
  return axis < 0 ? axis + r : axis;
}

const std::vector<Wanted>& unnamed() {
  static const std::vector<Wanted> kUnnamed(1);
  return kUnnamed;
}

}  // namespace

// The type of a number beside tensors that are all of rank 0, where the dtypes of both would meet:
// a number never makes a wider type, only a higher category.
std::optional<DType> Converter::number_type(const Bound& bound) const {
  std::optional<DType> tensors;
  bool whole = true;
  for (std::size_t i = 0; i < bound.mapping->parameters.size(); ++i) {
    if (!bound.values[i] || bound.mapping->parameters[i].use != Slot::Use::operand) continue;
    const Value& value = *bound.values[i];
    if (value.kind == Value::Kind::real) whole = false;
    if (value.kind != Value::Kind::tensor) continue;
    const Type* type = type_of(value.tensor);
    if (!type || !type->shape.empty()) return std::nullopt;
    tensors = tensors ? promote(*tensors, false, type->dtype, false) : type->dtype;
  }
  if (!tensors || *tensors == DType::f64) return tensors;
  if (is_float(*tensors) || !whole) return DType::f32;  // of bf16: the result is rounded, not the number
  return *tensors == DType::b8 ? DType::i64 : *tensors;
}

// What PyTorch gives where `number_type` had to compute in f32.
std::optional<DType> Converter::rank0_result(const Bound& bound, const Op& op) const {
  constexpr std::string_view kArithmetic[] = {"add", "sub",     "mul",    "div",
                                              "pow", "maximum", "minimum"};
  if (std::find(std::begin(kArithmetic), std::end(kArithmetic), op.name) == std::end(kArithmetic))
    return std::nullopt;
  std::optional<DType> half;
  bool number = false;
  for (std::size_t i = 0; i < bound.mapping->parameters.size(); ++i) {
    if (!bound.values[i] || bound.mapping->parameters[i].use != Slot::Use::operand) continue;
    const Value& value = *bound.values[i];
    number = number || value.kind == Value::Kind::real || value.kind == Value::Kind::integer;
    if (value.kind != Value::Kind::tensor) continue;
    const Type* type = type_of(value.tensor);
    if (!type || !type->shape.empty()) return std::nullopt;
    half = half ? promote(*half, false, type->dtype, false) : type->dtype;
  }
  bool narrow = half && is_float(*half) && *half != DType::f32 && *half != DType::f64;
  return number && narrow ? half : std::nullopt;
}

// exp, div and the like of whole numbers and booleans are those of floats.
Applied Converter::floating(const Bound& bound, const std::vector<Wanted>& wanted,
                            const Site& site) {
  Bound out = bound;
  bool any = false;
  for (std::size_t i = 0; i < bound.mapping->parameters.size(); ++i) {
    if (!bound.values[i] || bound.mapping->parameters[i].use != Slot::Use::operand) continue;
    const Value& value = *bound.values[i];
    if (value.kind == Value::Kind::none) continue;
    const Type* type = value.kind == Value::Kind::tensor ? type_of(value.tensor) : nullptr;
    if (value.kind == Value::Kind::tensor && !type) return apply_direct(bound, wanted, site);
    if (type && is_float(type->dtype)) return apply_direct(bound, wanted, site);
    any = any || type;
  }
  if (!any) return apply_direct(bound, wanted, site);
  for (std::optional<Value>& value : out.values) {
    if (!value || value->kind != Value::Kind::tensor) continue;
    Applied cast_to = cast(value->tensor, DType::f32, unnamed(), site);
    if (!cast_to || !*cast_to) return cast_to;
    value->tensor = (*cast_to)->front();
  }
  return apply_direct(out, wanted, site);
}

// The bounds are numbers or tensors, and either may be left out. `clamp` itself keeps the type of
// its operand.
Applied Converter::clamp(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  const Value *low = bound.find("min"), *high = bound.find("max");
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  auto given = [](const Value* v) { return v && v->kind != Value::Kind::none; };
  auto number = [](const Value* v) {
    return v && (v->kind == Value::Kind::integer || v->kind == Value::Kind::real);
  };
  const Type* type = x ? type_of(*x) : nullptr;
  if (!type || (!given(low) && !given(high))) return kNotThis;
  bool reals = (low && low->kind == Value::Kind::real) || (high && high->kind == Value::Kind::real);
  if (number(low) && number(high) && (is_float(type->dtype) || !reals)) {
    std::optional<Attribute> min = as_attribute(*low, AttributeKind::float_),
                             max = as_attribute(*high, AttributeKind::float_);
    if (!min || !max) return kNotThis;
    return some(emit("clamp", {*x}, {{key("min"), *min}, {key("max"), *max}}, wanted, site));
  }
  for (const auto& [value, op] : {std::pair{low, "maximum"}, std::pair{high, "minimum"}}) {
    if (!given(value)) continue;
    Mapping step{bound.mapping->target, op, {}, Special::none};
    step.parameters.resize(2);
    for (std::size_t i = 0; i < 2; ++i) {
      step.parameters[i].use = Slot::Use::operand;
      step.parameters[i].names = {i == 0 ? "self" : "other"};
      step.parameters[i].to = i == 0 ? "x" : "y";
    }
    bool last = value == high || !given(high);
    Value self = *bound.find("self");
    self.tensor = *x;
    Applied results = apply_direct({&step, {self, *value}}, last ? wanted : unnamed(), site);
    if (!results || !*results || last) return results;
    x = (*results)->front();
  }
  return kNotThis;
}

// beta · bias + alpha · (a × b); with a row as bias and neither factor it is `addmm`.
Applied Converter::addmm(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  const Value *beta = bound.find("beta"), *alpha = bound.find("alpha");
  std::optional<ValueId> bias = tensor_of(bound.find("self")), a = tensor_of(bound.find("mat1")),
                         b = tensor_of(bound.find("mat2"));
  if (!bias || !a || !b || !beta || !alpha) return kNotThis;
  bool plain = is_one(beta, context_) && is_one(alpha, context_);
  const Type *of_bias = type_of(*bias), *of_b = type_of(*b);
  if (!of_bias || !of_b || of_b->shape.size() != 2)
    return plain ? apply_direct(bound, wanted, site) : Applied(kNotThis);
  bool row = of_bias->shape.size() == 1 && of_bias->shape[0] == of_b->shape[1];
  if (plain && row) return apply_direct(bound, wanted, site);
  Result<Results> sum = emit("mm", {*a, *b}, {}, unnamed(), site);
  if (!sum) return forward(sum);
  ValueId product = sum->front(), added = *bias;
  for (auto [value, factor] : {std::pair{&product, alpha}, std::pair{&added, beta}}) {
    if (is_one(factor, context_)) continue;
    std::optional<ValueId> number = as_operand(*factor, site);
    if (!number || !number->valid()) return kNotThis;
    Result<Results> scaled_value = emit("mul", {*value, *number}, {}, unnamed(), site);
    if (!scaled_value) return forward(scaled_value);
    *value = scaled_value->front();
  }
  return some(emit("add", {product, added}, {}, wanted, site));
}

// Parts of several types are brought to the one that they promote to.
Applied Converter::cat(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  Bound out = bound;
  std::optional<Value>* parts = nullptr;
  for (std::optional<Value>& value : out.values)
    if (value && value->kind == Value::Kind::list) parts = &value;
  if (!parts) return kNotThis;
  std::optional<DType> common;
  for (const Value& part : (*parts)->items) {
    const Type* type = part.kind == Value::Kind::tensor ? type_of(part.tensor) : nullptr;
    if (!type) return apply_direct(bound, wanted, site);
    common = common ? promote(*common, false, type->dtype, false) : type->dtype;
  }
  for (Value& part : (*parts)->items) {
    if (type_of(part.tensor)->dtype == *common) continue;
    Applied same = cast(part.tensor, *common, unnamed(), site);
    if (!same || !*same) return same;
    part.tensor = (*same)->front();
  }
  return apply_direct(out, wanted, site);
}

// stack: each part with one more axis, and these joined.
Applied Converter::stack(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  const Value *parts = bound.find("tensors"), *dim = bound.find("dim");
  if (!parts || parts->kind != Value::Kind::list || parts->items.empty() || !dim) return kNotThis;
  const Type* first =
      parts->items[0].kind == Value::Kind::tensor ? type_of(parts->items[0].tensor) : nullptr;
  if (!first) return kNotThis;
  std::int64_t axis = axis_of(as_int(*dim), first->shape.size() + 1);
  if (axis < 0) return kNotThis;
  Bound out = bound;
  for (std::optional<Value>& value : out.values) {
    if (!value || value->kind != Value::Kind::list) continue;
    for (Value& part : value->items) {
      const Type* type = part.kind == Value::Kind::tensor ? type_of(part.tensor) : nullptr;
      if (!type) return kNotThis;
      Shape shape = type->shape;
      shape.insert(shape.begin() + axis, context_.dims.constant(1));
      Applied wider = reshape_to(part.tensor, std::move(shape), unnamed(), site);
      if (!wider || !*wider) return wider;
      part.tensor = (*wider)->front();
    }
  }
  return cat(out, wanted, site);
}

// unbind: parts of one element each, without their axis.
Applied Converter::unbind(const Bound& bound, const std::vector<Wanted>& wanted,
                          const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Value* dim = bound.find("dim");
  const Type* type = x ? type_of(*x) : nullptr;
  if (!type || !dim) return kNotThis;
  std::int64_t axis = axis_of(as_int(*dim), type->shape.size());
  if (axis < 0) return kNotThis;
  Shape rest = type->shape;
  std::optional<std::int64_t> count = context_.dims.value(rest[static_cast<std::size_t>(axis)]);
  constexpr std::int64_t kMaxParts = 4096;
  if (!count || *count < 1 || *count > kMaxParts) return kNotThis;
  rest.erase(rest.begin() + axis);
  Shape sizes(static_cast<std::size_t>(*count), context_.dims.constant(1));
  Result<Results> parts =
      emit("split", {*x}, {{key("dim"), axis}, {key("sizes"), sizes}}, {}, site);
  if (!parts) return forward(parts);
  Results out;
  for (std::size_t i = 0; i < parts->size(); ++i) {
    std::vector<Wanted> name{i < wanted.size() ? wanted[i] : Wanted()};
    Applied part = reshape_to((*parts)[i], rest, name, site);
    if (!part || !*part) return part;
    out.push_back((*part)->front());
  }
  return std::optional(std::move(out));
}

// logical_not and the like look at what is not zero.
Applied Converter::logical(const Bound& bound, const std::vector<Wanted>& wanted,
                           const Site& site) {
  Bound out = bound;
  for (std::optional<Value>& value : out.values) {
    if (!value || value->kind != Value::Kind::tensor) continue;
    const Type* type = type_of(value->tensor);
    if (!type) return kNotThis;
    if (type->dtype == DType::b8) continue;
    Applied truth = cast(value->tensor, DType::b8, unnamed(), site);
    if (!truth || !*truth) return truth;
    value->tensor = (*truth)->front();
  }
  return apply_direct(out, wanted, site);
}

}  // namespace pw::fx
