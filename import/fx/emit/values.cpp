#include "import/fx/emit/values.hpp"

#include <algorithm>
#include <limits>

namespace pw::fx {
namespace {

const std::map<std::string_view, DType> kTorchDTypes = {
    {"torch.bfloat16", DType::bf16},
    {"torch.float16", DType::f16},
    {"torch.half", DType::f16},
    {"torch.float32", DType::f32},
    {"torch.float", DType::f32},
    {"torch.float64", DType::f64},
    {"torch.double", DType::f64},
    {"torch.int8", DType::i8},
    {"torch.uint8", DType::u8},
    {"torch.int32", DType::i32},
    {"torch.int", DType::i32},
    {"torch.int64", DType::i64},
    {"torch.long", DType::i64},
    {"torch.bool", DType::b8},
    {"torch.float8_e4m3fn", DType::f8e4m3},
    {"torch.float8_e5m2", DType::f8e5m2},
};

}  // namespace

const Value* Bound::find(std::string_view parameter) const {
  for (std::size_t i = 0; i < mapping->parameters.size(); ++i) {
    const auto& names = mapping->parameters[i].names;
    if (std::ranges::find(names, parameter) != names.end())
      return values[i] ? &*values[i] : nullptr;
  }
  return nullptr;
}

std::string_view strip(std::string_view target) {
  constexpr std::string_view kOps = "torch.ops.";
  if (target.starts_with(kOps)) target.remove_prefix(kOps.size());
  return target;
}

const Value* keyword(const Arguments& arguments, std::string_view name) {
  for (const auto& [key, value] : arguments.keywords)
    if (key == name) return &value;
  return nullptr;
}

Value integer(Dims& dims, std::int64_t v) {
  Value out;
  out.kind = Value::Kind::integer;
  out.dim = dims.constant(v);
  return out;
}

std::optional<std::int64_t> as_int(const Dims& dims, const Value& value) {
  if (value.kind != Value::Kind::integer) return std::nullopt;
  return dims.value(value.dim);
}

std::optional<double> as_real(const Dims& dims, const Value& value) {
  if (value.kind == Value::Kind::real) return value.real;
  const std::optional<std::int64_t> whole = as_int(dims, value);
  return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

std::optional<Shape> as_shape(const Value& value) {
  if (value.kind == Value::Kind::integer) return Shape{value.dim};
  if (value.kind != Value::Kind::list) return std::nullopt;
  Shape out;
  for (const Value& item : value.items) {
    if (item.kind != Value::Kind::integer) return std::nullopt;
    out.push_back(item.dim);
  }
  return out;
}

std::optional<Attribute> as_any_attribute(const Dims& dims, const Value& value) {
  switch (value.kind) {
    case Value::Kind::boolean: return value.boolean;
    case Value::Kind::integer:
      if (std::optional<std::int64_t> v = dims.value(value.dim)) return *v;
      return value.dim;
    case Value::Kind::real: return value.real;
    case Value::Kind::string: return value.text;
    case Value::Kind::dtype: return value.dtype;
    case Value::Kind::list: {
      if (!value.keys.empty()) return std::nullopt;  // a dict
      if (std::optional<Shape> shape = as_shape(value)) return *shape;
      std::vector<double> reals;
      std::vector<std::string> texts;
      for (const Value& item : value.items) {
        if (item.kind == Value::Kind::real) reals.push_back(item.real);
        if (item.kind == Value::Kind::string) texts.push_back(item.text);
      }
      if (reals.size() == value.items.size()) return reals;
      if (texts.size() == value.items.size()) return texts;
      return std::nullopt;
    }
    case Value::Kind::none:
    case Value::Kind::tensor:
    case Value::Kind::other: return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Attribute> as_attribute(const Dims& dims, const Value& value, AttributeKind kind) {
  if (value.kind == Value::Kind::none) return None{};
  if (kind == AttributeKind::dims || kind == AttributeKind::ints) {
    std::optional<Shape> shape = as_shape(value);
    return shape ? std::optional<Attribute>(*shape) : std::nullopt;
  }
  if (kind == AttributeKind::float_ && value.kind == Value::Kind::boolean)
    return value.boolean ? 1.0 : 0.0;
  return as_any_attribute(dims, value);
}

std::optional<Value> torch_word(const std::string& text) {
  Value out;
  if (auto it = kTorchDTypes.find(text); it != kTorchDTypes.end()) {
    out.kind = Value::Kind::dtype;
    out.dtype = it->second;
  } else if (text == "inf" || text == "math.inf" || text == "nan" || text == "math.nan") {
    out.kind = Value::Kind::real;
    out.real = text.ends_with("inf") ? std::numeric_limits<double>::infinity()
                                     : std::numeric_limits<double>::quiet_NaN();
  } else if (text.starts_with("torch.") || text == "Ellipsis" || text == "device" ||
             text == "self") {
    out.kind = Value::Kind::other;
    out.text = text;
  } else {
    return std::nullopt;
  }
  return out;
}

}  // namespace pw::fx
