// Types of free operands: as the pattern annotates them, as the op declares them, or open. Operands
// that broadcast get one axis for all axes that nothing distinguishes.
// Generality by distinctness: an op that treats all axes alike cannot distinguish several axes from
// one with their product of extents. A single symbol thus represents any number of axes. Only axes
// that an attribute names, or that broadcasting treats differently, need symbols of their own.
#include "proof/sketch/operand_types.hpp"

#include <algorithm>

namespace pw::proof {

/// The first annotation with a shape decides; the op's declaration fills what the pattern leaves
/// open. Sizes are instantiated with f32, because the dtype is chosen separately.
TypeId OperandTypes::type_of(const PatternValue& pattern, const PatternNode& node, const Op& op,
                             std::size_t i, Env& local) {
  std::optional<DType> dtype;
  std::optional<Shape> shape;
  for (const TypeExpr& type : pattern.types) {
    for (const Expr& expr : type.dtype) {
      if (expr.kind != Expr::Kind::path) continue;
      dtypes_.choose(expr.text, env_, true);
      dtype = dtype_of(expr.text, env_);
    }
    if (type.any_shape || shape) continue;
    for (const Expr& dim : type.dims) sequences_.bind_names(dim, env_, true);
    TypeExpr typed = type;
    typed.dtype.clear();
    Expr any;
    any.kind = Expr::Kind::path;
    any.text = "f32";
    typed.dtype.push_back(any);
    const auto made = instantiate_type(context_, typed, env_);
    if (!made) throw Mistyped{made.error().front().message};
    shape = context_.types[*made].shape;
  }
  const TypeExpr* text = declared_type(op, i);
  if (!shape && text != nullptr && !text->any_shape)
    shape = signature_shape(*text, node, op, i, local);
  if (!shape) shape = open_shape(node, op, i);
  if (!dtype && text != nullptr && !text->dtype.empty() &&
      text->dtype[0].kind == Expr::Kind::path) {
    const std::string& name = text->dtype[0].text;
    if (const auto named = dtype_named(name)) {
      dtype = named;
    } else {
      choose_like(name, node, local);
      dtype = dtype_of(name, local);
    }
  }
  if (!dtype) {
    Env own;
    dtypes_.choose("any", own, false);
    dtype = dtype_of("any", own);
  }
  return context_.types.get(*dtype, *shape);
}

/// Chooses a dtype that the op declares itself.
void OperandTypes::choose_like(const std::string& name, const PatternNode&, Env& local) {
  if (local.count(name) != 0) return;
  Env own;
  dtypes_.choose("any", own, false);
  local.insert_or_assign(name, own.at("any"));
}

/// Nothing if the declaration leaves the shape open, as `[*s]` with an unbound `*s`.
std::optional<Shape> OperandTypes::signature_shape(const TypeExpr& text, const PatternNode& node,
                                                   const Op& op, std::size_t i, Env& local) {
  const bool open = text.dims.size() == 1 && text.dims[0].kind == Expr::Kind::star &&
                    local.count(text.dims[0].text) == 0;
  if (open) return std::nullopt;
  Shape shape;
  for (const Expr& dim : text.dims) {
    sequences_.bind_names(dim, local, false);
    if (dim.kind == Expr::Kind::star) {
      const auto bound = local.find(dim.text);
      const auto* known = bound == local.end() ? nullptr : std::get_if<Shape>(&bound->second);
      if (known == nullptr) return std::nullopt;
      shape.insert(shape.end(), known->begin(), known->end());
      continue;
    }
    const auto size = dim_of(dim, local);
    if (!size) return open_shape(node, op, i);
    shape.push_back(*size);
  }
  return shape;
}

/// `T[*s]` with an unknown `*s`: the axes that the attributes distinguish, plus one for all axes
/// before and one for all after these. With another operand, a shape that broadcasts with it. The
/// first operand that exists decides: the new one gets a shape that the op accepts with it.
Shape OperandTypes::open_shape(const PatternNode& node, const Op& op, std::size_t i) {
  const std::string base = name_of(node.operands[i], i);
  const bool joined = broadcasts(op) || op.operands.back().variadic;
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    const PatternValueId other = node.operands[k];
    const PatternValue& pattern = rule_.values[other];
    if (!values_[other].valid() || pattern.literal || pattern.attribute_variable) continue;
    const Shape shape = context_.types[graph_.type(values_[other])].shape;
    if (joined)
      return broadcastable(shape, base, op.operands[std::min(i, op.operands.size() - 1)].variadic);
    const TypeExpr* type = declared_type(op, k);
    const bool sequence =
        type != nullptr && type->dims.size() == 1 && type->dims[0].kind == Expr::Kind::star;
    if (!sequence) continue;
    if (auto same = but_along_axes(node, op, shape, base)) return *same;
  }
  return by_axes(node, op, base);
}

/// Returns another operand's sizes, except along the written axes; nothing if there are none.
std::optional<Shape> OperandTypes::but_along_axes(const PatternNode& node, const Op& op,
                                                  Shape shape, const std::string& base) {
  bool some = false;
  for (const PatternAttribute& attribute : node.attributes) {
    const AttributeDecl* decl = op.attribute(attribute.name);
    if (decl == nullptr || decl->kind != AttributeKind::axis) continue;
    const auto value = evaluate(context_, &graph_, attribute.value, env_);
    const auto axis = value ? axis_of(&*value, shape.size()) : std::nullopt;
    if (!axis) return std::nullopt;
    shape[*axis] = symbol(fmt::format("{}_{}", base, *axis));
    some = true;
  }
  return some ? std::optional(shape) : std::nullopt;
}

/// Unnamed operands are named by node and position, so that restarts give the same symbols.
std::string OperandTypes::name_of(PatternValueId id, std::size_t i) const {
  const std::string& name = rule_.values[id].name;
  return name.empty() || name == "_" ? fmt::format("s{}_{}", site_, i) : plain_name(name);
}

/// Shapes that broadcast with a given one: the same, one with an additional axis, a scalar, or one
/// with an axis of size 1. Combinations of these are not covered, which is granted.
Shape OperandTypes::broadcastable(Shape shape, const std::string& base, bool variadic) {
  if (variadic) return shape;
  granted_.insert("operands that broadcast do so as one of the cases looked at");
  const DimId one = context_.dims.constant(1);
  const std::size_t kind = ask("broadcastable " + base, shape.empty() ? 2 : 3 + shape.size());
  if (kind == 0) return shape;
  if (kind == 1) {
    shape.insert(shape.begin(), symbol(base + "_more"));
    return shape;
  }
  if (kind == 2) return {};
  shape[kind - 3] = one;
  return shape;
}

/// Example: for dim = -2, two axes are named from the end, and one more represents all others. For
/// an axis that is a variable there are three axes: before it, the axis itself, and after it.
Shape OperandTypes::by_axes(const PatternNode& node, const Op& op, const std::string& base) {
  std::vector<std::int64_t> axes;
  std::size_t variables = 0;
  for (const AttributeDecl& decl : op.attributes) {
    if (decl.kind != AttributeKind::axis) continue;
    const auto written = std::find_if(
        node.attributes.begin(), node.attributes.end(),
        [&](const PatternAttribute& attribute) { return attribute.name == decl.name; });
    const Attribute* fixed = decl.default_value && !node.open ? &*decl.default_value : nullptr;
    std::optional<Attribute> value;
    if (written != node.attributes.end()) {
      auto known = evaluate(context_, &graph_, written->value, env_);
      if (known) value = *known;
    } else if (fixed != nullptr) {
      value = *fixed;
    }
    if (value && std::holds_alternative<std::int64_t>(*value))
      axes.push_back(std::get<std::int64_t>(*value));
    else
      ++variables;
  }
  const auto axis = [&](std::size_t n) { return symbol(fmt::format("{}_{}", base, n)); };
  Shape shape;
  if (variables > 0) {  // one before, each named one, one between, one after
    for (std::size_t n = 0; n < 2 * variables + 1; ++n) shape.push_back(axis(n));
    return shape;
  }
  if (axes.empty()) {
    if (op.attribute("shape") != nullptr) return {axis(0), axis(1)};
    return {axis(0)};
  }
  std::int64_t front = 0, back = 0;
  for (std::int64_t a : axes) {
    front = std::max(front, a + 1);
    back = std::max(back, -a);
  }
  const std::size_t named = static_cast<std::size_t>(front + back);
  const bool no_more = rank_is_fixed(node) && ask("axes behind " + base, 2) == 1;
  for (std::size_t n = 0; n < named + (no_more ? 0 : 1); ++n) shape.push_back(axis(n));
  return shape;
}

/// Returns true if it is read, directly or indirectly, as an array of one rank.
/// Otherwise an axis for all others is added in every case.
bool OperandTypes::rank_is_fixed(const PatternNode& node) const {
  const auto fixed = [](const TypeExpr& type) {
    return !type.any_shape && std::none_of(type.dims.begin(), type.dims.end(), [](const Expr& dim) {
      return dim.kind == Expr::Kind::star || dim.kind == Expr::Kind::call;
    });
  };
  for (PatternValueId result : node.results) {
    if (std::any_of(rule_.values[result].types.begin(), rule_.values[result].types.end(), fixed))
      return true;
    for (const PatternNode& reader : rule_.nodes)
      for (std::size_t i = 0; i < reader.operands.size(); ++i) {
        if (reader.operands[i] != result) continue;
        const TypeExpr* type = declared_type(context_.ops[reader.op], i);
        if ((type != nullptr && fixed(*type)) || rank_is_fixed(reader)) return true;
      }
  }
  return false;
}

}  // namespace pw::proof
