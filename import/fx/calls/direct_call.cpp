// Conversions that only rename: each argument is an operand or an attribute of the op.
#include <algorithm>

#include "base/try.hpp"
#include "import/fx/calls/apply.hpp"

namespace pw::fx {
namespace {

bool is_one(const TypeExpr& type) {
  return !type.any_shape && type.dims.size() == 1 && type.dims[0].kind == pw::Expr::Kind::integer &&
         type.dims[0].integer == 1;
}

// Handles an input without a type where the op requires a string: the layer's name, which is that
// of the input.
std::optional<Attribute> as_text(Emitter& emitter, const Value& value) {
  if (value.kind != Value::Kind::tensor)
    return as_attribute(emitter.dims(), value, AttributeKind::str);
  if (!emitter.graph().is_input(value.tensor) || emitter.type_of(value.tensor)) return std::nullopt;
  emitter.effects().add_layer_name(value.tensor);
  return Attribute(std::string(emitter.graph().value_name(value.tensor)));
}

// Handles a tensor of rank 0 where the op requires a list of one.
std::optional<ValueId> as_declared(Emitter& emitter, ValueId value, const OperandDecl& decl,
                                   const Site& site) {
  const Type* type = emitter.type_of(value);
  if (!type || !type->shape.empty() || !decl.type || !is_one(*decl.type)) return value;
  Result<Results> list = emitter.emit(
      "reshape", {value}, {{"shape", Shape{emitter.dims().constant(1)}}}, kUnnamed, site);
  if (!list) return std::nullopt;
  return list->front();
}

// Replaces a size by the best-known one, and a tensor by a slice of all of it whose extents are.
bool unify_sizes(Value& value, Maker& make) {
  Emitter& emitter = make.emitter();
  bool changed = false;
  if (value.kind == Value::Kind::integer && value.dim.valid()) {
    const DimId to = emitter.sizes().representative(value.dim);
    changed = to != value.dim;
    value.dim = to;
  }
  for (Value& item : value.items) changed = unify_sizes(item, make) || changed;
  const Type* type = value.kind == Value::Kind::tensor ? emitter.type_of(value.tensor) : nullptr;
  if (!type) return changed;
  const Shape shape = type->shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const DimId to = emitter.sizes().representative(shape[axis]);
    if (to == shape[axis]) continue;
    const ValueId part = part_of_axis(make, value.tensor, axis, emitter.dims().constant(0), to);
    if (!part.valid()) return changed;
    value.tensor = part;
    changed = true;
  }
  return changed;
}

}  // namespace

std::optional<std::vector<ValueId>> operands_of(const KnownCall& call, const Op& op) {
  std::vector<ValueId> out;
  for (const OperandDecl& decl : op.operands) {
    const Value* value = nullptr;
    for (std::size_t i = 0; i < call.bound.mapping->parameters.size(); ++i) {
      const Slot& p = call.bound.mapping->parameters[i];
      if (p.use == Slot::Use::operand && p.to == decl.name && call.bound.values[i])
        value = &*call.bound.values[i];
    }
    if (decl.variadic) {
      if (value && value->kind == Value::Kind::none) continue;
      if (value && value->kind == Value::Kind::tensor) {
        out.push_back(value->tensor);
        continue;
      }
      if (!value || value->kind != Value::Kind::list) return std::nullopt;
      for (const Value& item : value->items) {
        if (item.kind != Value::Kind::tensor) return std::nullopt;
        out.push_back(item.tensor);
      }
      continue;
    }
    if (!value && !decl.optional) return std::nullopt;
    std::optional<ValueId> operand = value ? call.emitter.as_operand(*value, call.site) : ValueId();
    if (operand && operand->valid()) operand = as_declared(call.emitter, *operand, decl, call.site);
    if (!operand || (!operand->valid() && !decl.optional)) return std::nullopt;
    out.push_back(*operand);
  }
  return out;
}

std::optional<NamedAttributes> attributes_of(const KnownCall& call, const Op& op) {
  NamedAttributes out;
  for (std::size_t i = 0; i < call.bound.mapping->parameters.size(); ++i) {
    const Slot& p = call.bound.mapping->parameters[i];
    if (!call.bound.values[i] || p.to.empty()) continue;
    const AttributeDecl* decl = op.attribute(p.to);
    if (p.use == Slot::Use::attribute) {
      if (!decl) return std::nullopt;
      std::optional<Attribute> value =
          decl->kind == AttributeKind::str
              ? as_text(call.emitter, *call.bound.values[i])
              : as_attribute(call.dims(), *call.bound.values[i], decl->kind);
      if (!value) return std::nullopt;
      out.emplace_back(p.to, std::move(*value));
    } else if (p.use == Slot::Use::buffer && decl) {
      const Type* type = call.bound.values[i]->kind == Value::Kind::tensor
                             ? call.type_of(call.bound.values[i]->tensor)
                             : nullptr;
      if (!type) return std::nullopt;
      out.emplace_back(p.to, type->dtype);
    }
  }
  return out;
}

Applied apply_direct(const KnownCall& call) {
  OpId id = call.emitter.context().ops.find(call.bound.mapping->op);
  if (!id.valid()) return std::optional<Results>();
  Op op = call.emitter.context().ops[id];
  std::optional<NamedAttributes> attributes = attributes_of(call, op);
  if (!attributes) return std::optional<Results>();
  std::optional<std::vector<ValueId>> operands = operands_of(call, op);
  if (!operands) return std::optional<Results>();
  return call.emit(op.name, *operands, *attributes);
}

bool unify_sizes(Emitter& emitter, Bound& bound, const Site& site) {
  if (emitter.sizes().empty()) return false;
  Maker make(emitter, site);
  bool changed = false;
  for (std::optional<Value>& value : bound.values)
    if (value) changed = unify_sizes(*value, make) || changed;
  return changed;
}

}  // namespace pw::fx
