#include <algorithm>
#include <set>

#include "base/try.hpp"
#include "import/fx/calls/apply.hpp"

namespace pw::fx {
namespace {

// Calls of tensors that PyTorch computes in their common type. Sums, products, and quotients
// are not among them: they read a tensor of rank 0 in its own type, and integers wrap around
// anyway.
const std::set<std::string_view> kInCommonType = {
    "aten.eq.Tensor",
    "aten.ne.Tensor",
    "aten.lt.Tensor",
    "aten.le.Tensor",
    "aten.gt.Tensor",
    "aten.ge.Tensor",
    "aten.maximum",
    "aten.minimum",
    "aten.max.other",
    "aten.min.other",
    "aten.fmax",
    "aten.fmin",
    "aten.fmod.Tensor",
    "aten.remainder.Tensor",
    "aten.pow.Tensor_Tensor",
    "aten.pow.Tensor",
    "aten.atan2",
    "aten.where.self",
    "aten.clamp.Tensor",
    "aten.clamp_min.Tensor",
    "aten.clamp_max.Tensor",
    "aten.bitwise_and.Tensor",
    "aten.bitwise_or.Tensor",
    "aten.bitwise_xor.Tensor",
    "aten.__and__.Tensor",
    "aten.__or__.Tensor",
    "aten.__xor__.Tensor",
    "aten.bitwise_left_shift.Tensor",
    "aten.bitwise_right_shift.Tensor",
    "aten.__lshift__.Tensor",
    "aten.__rshift__.Tensor",
};
// The same for integers only.
const std::set<std::string_view> kQuotients = {"aten.floor_divide", "aten.div.Tensor_mode"};
// Calls that multiply their second operand by `alpha`.
const std::set<std::string_view> kSums = {"aten.add.Tensor", "aten.sub.Tensor", "aten.rsub.Tensor"};

// Calls of two tensors that the op itself converts.
const std::set<std::string_view> kOthers = {"aten.mul.Tensor", "aten.div.Tensor",
                                            "aten.true_divide.Tensor"};

constexpr std::int64_t kExact = std::int64_t{1} << 53;  // whole numbers up to it are exact in f64

// Returns true if `wide` has each number of `narrow`.
bool has_all_of(DType wide, DType narrow) {
  if (is_float(wide) && is_integer(narrow)) return size_of(wide) > size_of(narrow);
  return promote(wide, false, narrow, false) == wide;
}

bool has_factor(const Dims& dims, const Arguments& arguments) {
  const Value* factor = arguments.positional.size() > 2 ? &arguments.positional[2] : nullptr;
  for (const auto& [name, value] : arguments.keywords)
    if (name == "alpha") factor = &value;
  return factor && as_int(dims, *factor) != 1;
}

// Returns true for u8 and i8, which PyTorch computes in i16.
bool promote_to_i16(DType a, DType b) {
  return (a == DType::u8 && b == DType::i8) || (a == DType::i8 && b == DType::u8);
}

// Returns the common type of tensors; nothing if the library lacks it. Those of rank 0 count only
// if they are of a higher kind, and one in f64 makes f64 of integers, which a number does not.
std::optional<DType> common_type(const std::vector<Type>& types) {
  std::optional<DType> ranked, single;
  for (const Type& type : types) {
    std::optional<DType>& all = type.shape.empty() ? single : ranked;
    if (all && promote_to_i16(*all, type.dtype)) return std::nullopt;
    all = all ? promote(*all, false, type.dtype, false) : type.dtype;
  }
  if (!ranked || !single) return ranked ? ranked : single;
  if (*single == DType::f64 && !is_float(*ranked)) return DType::f64;
  return promote(*ranked, false, *single, true);
}

// Returns the places of the operands that have a common type.
std::vector<std::size_t> common_operands(std::string_view target, const Arguments& arguments) {
  std::vector<std::size_t> out{0, 1};
  if (target == "aten.where.self") out = {1, 2};
  if (target == "aten.clamp.Tensor") out = {0, 1, 2};
  std::erase_if(out, [&](std::size_t i) {
    return i >= arguments.positional.size() || arguments.positional[i].kind == Value::Kind::none;
  });
  return out;
}

// Returns true if an operand must be cast before the call: elsewhere the op itself converts it.
bool must_cast(std::string_view target, bool factor, DType given, DType common) {
  if (given == common) return false;
  if (common == DType::f64 && !is_float(given)) return true;
  if (kOthers.contains(target)) return false;
  if (factor) return has_all_of(common, given) || (is_float(common) && !is_float(given));
  if (kSums.contains(target) || (kQuotients.contains(target) && is_float(common))) return false;
  return !has_all_of(common, given);
}

}  // namespace

Result<bool> to_common_type(Emitter& emitter, std::string_view target, Arguments& arguments,
                            const Site& site) {
  constexpr std::string_view kDefault = ".default";
  if (target.ends_with(kDefault)) target.remove_suffix(kDefault.size());
  if (!kInCommonType.contains(target) && !kQuotients.contains(target) && !kSums.contains(target) &&
      !kOthers.contains(target))
    return true;
  const bool factor = kSums.contains(target) && has_factor(emitter.dims(), arguments);
  const std::vector<std::size_t> operands = common_operands(target, arguments);
  std::vector<Type> types;
  for (const std::size_t i : operands) {
    const Type* type = typed_tensor(emitter, &arguments.positional[i]).type;
    if (!type) return true;
    types.push_back(*type);
  }
  if (types.size() < 2) return true;
  const std::optional<DType> common = common_type(types);
  if (!common) return false;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (!must_cast(target, factor, types[k].dtype, *common)) continue;
    Value& operand = arguments.positional[operands[k]];
    operand.tensor =
        PW_TRY(emitter.emit("cast", {operand.tensor}, {{"dtype", *common}}, kUnnamed, site))
            .front();
  }
  return true;
}

// Parts of several types are brought to the one that they promote to.
Applied convert_cat(const KnownCall& call) {
  Bound out = call.bound;
  std::optional<Value>* parts = nullptr;
  for (std::optional<Value>& value : out.values)
    if (value && value->kind == Value::Kind::list) parts = &value;
  if (!parts) return kNotThis;
  std::optional<DType> common;
  for (const Value& part : (*parts)->items) {
    const Type* type = part.kind == Value::Kind::tensor ? call.type_of(part.tensor) : nullptr;
    if (!type) return apply_direct(call);
    if (common && promote_to_i16(*common, type->dtype)) return kNotThis;
    common = common ? promote(*common, false, type->dtype, false) : type->dtype;
  }
  for (Value& part : (*parts)->items) {
    if (call.type_of(part.tensor)->dtype == *common) continue;
    Applied same = cast(call.unnamed(), part.tensor, *common);
    if (!same || !*same) return same;
    part.tensor = (*same)->front();
  }
  return apply_direct(call.with(out));
}

std::optional<Attribute> fill_of(const Dims& dims, const Value& number, DType dtype) {
  const std::optional<Attribute> value = as_attribute(dims, number, AttributeKind::float_);
  const std::int64_t* whole = value ? std::get_if<std::int64_t>(&*value) : nullptr;
  if (!whole || !is_integer(dtype) || dtype == DType::i64) return value;
  const bool is_unsigned = dtype == DType::u8;
  const std::int64_t count = std::int64_t{1} << (8 * size_of(dtype)), half = count / 2;
  const std::int64_t least = is_unsigned ? 1 - count : -half, end = is_unsigned ? count : half;
  if (*whole < least || *whole >= end) return std::nullopt;
  return is_unsigned && *whole < 0 ? *whole + count : *whole;
}

// A number as a tensor of rank 0: f32 where no type is named, whatever the number.
Applied convert_scalar(const KnownCall& call) {
  const Value *number = call.find("s"), *dtype = call.find("dtype");
  if (!number || !dtype) return kNotThis;
  const DType type = dtype->kind == Value::Kind::dtype ? dtype->dtype : DType::f32;
  std::optional<Attribute> value = fill_of(call.dims(), *number, type);
  const std::int64_t* whole = value ? std::get_if<std::int64_t>(&*value) : nullptr;
  if (whole && (is_float(type) || std::abs(*whole) <= kExact)) value = static_cast<double>(*whole);
  if (!value || !std::holds_alternative<double>(*value)) return kNotThis;
  return call.emit("full", {}, {{"shape", Shape()}, {"value", *value}, {"dtype", type}});
}

// stack: each part with one more axis, and these joined.
Applied convert_stack(const KnownCall& call) {
  const Value *parts = call.find("tensors"), *dim = call.find("dim");
  if (!parts || parts->kind != Value::Kind::list || parts->items.empty() || !dim) return kNotThis;
  const Type* first =
      parts->items[0].kind == Value::Kind::tensor ? call.type_of(parts->items[0].tensor) : nullptr;
  if (!first) return kNotThis;
  std::optional<std::size_t> axis = axis_of(as_int(call.dims(), *dim), first->shape.size() + 1);
  if (!axis) return kNotThis;
  Bound out = call.bound;
  for (std::optional<Value>& value : out.values) {
    if (!value || value->kind != Value::Kind::list) continue;
    for (Value& part : value->items) {
      const Type* type = part.kind == Value::Kind::tensor ? call.type_of(part.tensor) : nullptr;
      if (!type) return kNotThis;
      Shape shape = type->shape;
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis), call.dims().constant(1));
      Applied wider = reshape_to(call.unnamed(), part.tensor, std::move(shape));
      if (!wider || !*wider) return wider;
      part.tensor = (*wider)->front();
    }
  }
  return convert_cat(call.with(out));
}

// unbind: parts of one element each, without their axis.
Applied convert_unbind(const KnownCall& call) {
  std::optional<ValueId> x = tensor_of(call.find("self"));
  const Value* dim = call.find("dim");
  const Type* type = x ? call.type_of(*x) : nullptr;
  if (!type || !dim) return kNotThis;
  std::optional<std::size_t> axis = axis_of(as_int(call.dims(), *dim), type->shape.size());
  if (!axis) return kNotThis;
  Shape rest = type->shape;
  std::optional<std::int64_t> count = call.dims().value(rest[*axis]);
  constexpr std::int64_t kMaxParts = 4096;
  if (!count || *count < 1 || *count > kMaxParts) return kNotThis;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(*axis));
  Shape sizes(static_cast<std::size_t>(*count), call.dims().constant(1));
  Results parts = PW_TRY(call.emitter.emit(
      "split", {*x}, {{"dim", static_cast<std::int64_t>(*axis)}, {"sizes", sizes}}, {}, call.site));
  Results out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Outputs name{call.name_of(i)};
    Applied part = reshape_to(call.naming(name), parts[i], rest);
    if (!part || !*part) return part;
    out.push_back((*part)->front());
  }
  return std::optional(std::move(out));
}

}  // namespace pw::fx
