// Private to the importer: shared parts of the functions that make nodes of a call.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/fx/calls/conversions.hpp"

namespace pw::fx {

/// Result of a row that does not apply.
inline const std::optional<Results> kNotThis;
/// Request for a node whose one result gets a generated name.
inline const Outputs kUnnamed(1);

/// Returns the tensor; nothing if the argument is omitted or not a tensor.
inline std::optional<ValueId> tensor_of(const Value* value) {
  if (!value || value->kind != Value::Kind::tensor) return std::nullopt;
  return value->tensor;
}

/// An argument that is a tensor, and its type; both are empty if it is not a tensor.
struct TypedTensor {
  std::optional<ValueId> value;
  const Type* type;  ///< null if it is unknown
};
inline TypedTensor typed_tensor(const Emitter& emitter, const Value* argument) {
  const std::optional<ValueId> value = tensor_of(argument);
  return {value, value ? emitter.type_of(*value) : nullptr};
}

inline Applied some(Result<Results> results) {
  if (!results) return forward(results);
  return std::optional(std::move(*results));
}

/// Returns the axis counted from the front; nothing if there is no such axis.
inline std::optional<std::size_t> axis_of(std::optional<std::int64_t> axis, std::size_t rank) {
  auto r = static_cast<std::int64_t>(rank);
  if (!axis || *axis < -r || *axis >= r) return std::nullopt;
  return static_cast<std::size_t>(*axis < 0 ? *axis + r : *axis);
}

/// A call whose arguments are bound to a row of the table.
struct KnownCall {
  Emitter& emitter;
  const Bound& bound;
  const Outputs& wanted;
  const Site& site;

  [[nodiscard]] const Value* find(std::string_view parameter) const {
    return bound.find(parameter);
  }
  [[nodiscard]] Dims& dims() const { return emitter.dims(); }
  [[nodiscard]] const Type* type_of(ValueId value) const { return emitter.type_of(value); }
  [[nodiscard]] TypedTensor tensor(std::string_view parameter) const {
    return typed_tensor(emitter, find(parameter));
  }
  /// Returns an argument that is a constant integer; nothing for other values.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view parameter) const {
    return as_int(dims(), *find(parameter));
  }
  /// Returns the axis of a tensor that an argument names; nothing if the type is null.
  [[nodiscard]] std::optional<std::size_t> axis(std::string_view parameter,
                                                const Type* type) const {
    if (!type) return std::nullopt;
    return axis_of(integer(parameter), type->shape.size());
  }
  /// Returns the op of the row, which the library must have.
  [[nodiscard]] const Op& op() const {
    const auto& ops = emitter.context().ops;
    return ops[ops.find(bound.mapping->op)];
  }
  /// Returns the name that a result is to have, if any.
  [[nodiscard]] Wanted name_of(std::size_t result) const {
    return result < wanted.size() ? wanted[result] : Wanted();
  }
  /// Return the call with other names of its results, or with other arguments.
  [[nodiscard]] KnownCall naming(const Outputs& outputs) const {
    return {emitter, bound, outputs, site};
  }
  [[nodiscard]] KnownCall unnamed() const { return naming(kUnnamed); }
  [[nodiscard]] KnownCall with(const Bound& arguments) const {
    return {emitter, arguments, wanted, site};
  }
  /// Adds the last node of the call, which has the names of its results.
  [[nodiscard]] Applied emit(std::string_view op, const std::vector<ValueId>& operands,
                             const NamedAttributes& attributes = {}) const {
    return some(emitter.emit(op, operands, attributes, wanted, site));
  }
};

/// Returns a bound of a slice, as a number if it is constant.
inline Attribute bound_of(const Dims& dims, DimId d) {
  if (std::optional<std::int64_t> v = dims.value(d)) return *v;
  return d;
}

/// Target split into parts: `aten.add_.Tensor` into `aten.add_` and `Tensor`; either part may be
/// empty.
struct Target {
  std::string_view base, overload;
  /// Returns true for `ns.foo_` and `ns.foo_.Tensor`, which by PyTorch's convention write their
  /// first argument and return it.
  [[nodiscard]] bool in_place() const {
    return base.find('.') != std::string_view::npos && base.ends_with("_") &&
           (!base.ends_with("__") || operator_in_place());
  }
  /// Returns true for `ns.__iand__`, Python's name for `&=`.
  [[nodiscard]] bool operator_in_place() const {
    const std::string_view name = base.substr(base.find('.') + 1);
    return name == "__iand__" || name == "__ior__" || name == "__ixor__" || name == "__ilshift__" ||
           name == "__irshift__";
  }
};
inline Target split_target(std::string_view target) {
  const std::size_t space = target.find('.');
  const std::size_t dot = space == std::string_view::npos ? space : target.find('.', space + 1);
  if (dot == std::string_view::npos) return {target, {}};
  return {target.substr(0, dot), target.substr(dot + 1)};
}

/// Returns `aten.add.Tensor` for `aten.add_.Tensor`.
inline std::string functional_of(const Target& in_place) {
  std::string out(in_place.base);
  if (in_place.operator_in_place())
    out.erase(out.find(".__i") + 3, 1);  // `aten.__iand__` is `aten.__and__`
  else
    out.pop_back();
  return in_place.overload.empty() ? out : out + "." + std::string(in_place.overload);
}

/// Returns the tensors in written order, including those in lists.
inline std::vector<const Value*> tensors_in(const Arguments& arguments) {
  std::vector<const Value*> out;
  const auto collect = [&](const Value& value, auto&& self) -> void {
    if (value.kind == Value::Kind::tensor) out.push_back(&value);
    for (const Value& item : value.items) self(item, self);
  };
  for (const Value& value : arguments.positional) collect(value, collect);
  for (const auto& [name, value] : arguments.keywords) collect(value, collect);
  return out;
}

}  // namespace pw::fx
