// Equations between sizes that ops impose: operands that broadcast, parts that add up to their
// whole, and the divisibility that the bodies of ops require. A body is read as far as its operands
// and attributes are known. Without these equations most general graphs would be ill typed: two
// operands of add need equal sizes, and a reshape needs equal numbers of elements. A case that
// stays ill typed is skipped as impossible, so a missing equation also narrows what a proof covers.
#include "proof/sketch/op_constraints.hpp"

#include <algorithm>

namespace pw::proof {

/// Requires corresponding axes of broadcast operands to be equal, or one of them to have size 1.
void OpConstraints::fit_broadcast(const Op& op, const NodeRequest& request) {
  if (!broadcasts(op)) return;
  Shape out;
  const DimId one = context_.dims.constant(1);
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    if (!request.operands[i].valid()) continue;
    const Shape& shape = context_.types[graph_.type(request.operands[i])].shape;
    if (shape.size() > out.size()) out.insert(out.begin(), shape.size() - out.size(), one);
    for (std::size_t k = 0; k < shape.size(); ++k) {
      DimId& to = out[out.size() - 1 - k];
      const DimId from = shape[shape.size() - 1 - k];
      if (to == one) to = from;
      if (from == one || from == to ||
          context_.dims.prove(Compare::eq, from, to, graph_.facts) == Truth::yes)
        continue;
      const bool free = !context_.dims.value(from) && !context_.dims.value(to);
      // Two unknown extents are equal, or either one is 1: three cases.
      const std::size_t kind = free ? ask(fmt::format("meets {} {} {}", site_, i, k), 3) : 0;
      if (kind == 0) equations_.equal(from, to);
      if (kind == 1) equations_.equal(from, one);
      if (kind == 2) equations_.equal(to, one);
    }
  }
}

/// Requires scattered values to match the sizes of all other axes.
void OpConstraints::fit_put(const Op& op, const NodeRequest& request, const Attribute* dim) {
  if (op.primitive != Primitive::index_put || request.operands.size() < 2) return;
  const Shape to = context_.types[graph_.type(request.operands[0])].shape,
              values = context_.types[graph_.type(request.operands[1])].shape;
  const auto axis = axis_of(dim, to.size());
  if (!axis || to.size() != values.size()) return;
  for (std::size_t k = 0; k < to.size(); ++k)
    if (k != *axis && context_.dims.value(values[k]) != 1) equations_.equal(to[k], values[k]);
}

/// All axes except the joined one are equal.
void OpConstraints::fit_cat(const Op& op, const NodeRequest& request, const Attribute* dim) {
  if (op.primitive != Primitive::cat) return;
  const Shape first = context_.types[graph_.type(request.operands[0])].shape;
  const auto axis = axis_of(dim, first.size());
  for (ValueId value : request.operands) {
    const Shape other = context_.types[graph_.type(value)].shape;
    for (std::size_t k = 0; axis && k < first.size() && other.size() == first.size(); ++k)
      if (k != *axis) equations_.equal(first[k], other[k]);
  }
}

/// Derives the operand's sizes from those of a split or reshape.
/// A split's sizes add up to its axis. A reshape keeps the number of elements; with one extent of
/// -1, the others must divide it.
void OpConstraints::fit_attributes(const Op& op, const NodeRequest& request, std::size_t results) {
  fit_broadcast(op, request);
  if (request.operands.empty() || !request.operands[0].valid()) return;
  const Shape& shape = context_.types[graph_.type(request.operands[0])].shape;
  const auto find = [&](std::string_view name) -> const Attribute* {
    for (const auto& [key, value] : request.attributes)
      if (context_.strings.text(key) == name) return &value;
    const AttributeDecl* decl = op.attribute(name);
    return decl != nullptr && decl->default_value ? &*decl->default_value : nullptr;
  };
  Dims& dims = context_.dims;
  fit_cat(op, request, find("dim"));
  fit_put(op, request, find("dim"));
  if (const Attribute* sizes = find("sizes");
      sizes != nullptr && op.primitive == Primitive::split) {
    const auto* list = std::get_if<std::vector<DimId>>(sizes);
    const auto axis = axis_of(find("dim"), shape.size());
    if (list == nullptr || !axis || list->size() != results) return;
    DimId sum = dims.constant(0);
    for (DimId dim : *list) sum = dims.add(sum, dim);
    equations_.equal(shape[*axis], sum);
  }
  if (const Attribute* wanted = find("shape");
      wanted != nullptr && op.primitive == Primitive::reshape) {
    const auto* list = std::get_if<std::vector<DimId>>(wanted);
    if (list == nullptr) return;
    DimId a = dims.constant(1), b = a;
    for (DimId dim : shape) a = dims.mul(a, dim);
    bool rest = false;
    for (DimId dim : *list) {
      if (dims.value(dim) == -1)
        rest = true;
      else
        b = dims.mul(b, dim);
    }
    if (rest)
      equations_.multiple(a, b);
    else
      equations_.equal(a, b);
  }
}

/// Imposes the size constraints of an op's body: fractions are integers, parts add up to their
/// operand, and results have the sizes of the signature.
void OpConstraints::fit_body(const Op& op, const NodeRequest& request) {
  Env local;
  std::vector<TypeId> types;
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    const ValueId value = request.operands[i];
    types.push_back(value.valid() ? graph_.type(value) : TypeId());
    if (const TypeExpr* type = declared_type(op, i); type != nullptr && value.valid())
      unify(context_, *type, graph_.type(value), local);
    if (i < op.operands.size() && value.valid()) local.insert_or_assign(op.operands[i].name, value);
  }
  for (const AttributeDecl& decl : op.attributes)
    if (decl.default_value) local.insert_or_assign(decl.name, *decl.default_value);
  for (const auto& [key, value] : request.attributes)
    local.insert_or_assign(std::string(context_.strings.text(key)), value);
  for (const ResultDecl& result : op.results)
    if (result.type)
      for (const Expr& dim : result.type->dims) whole_fractions(dim, local);
  for (const Statement& statement : op.body) fit_call(statement.value, local);
  const auto attributes = complete_attributes(context_, op, request.attributes, types);
  if (!attributes) return;
  const auto made = body_types(context_, request.op, types, *attributes);
  if (!made) return;
  for (std::size_t r = 0; r < op.results.size() && r < made->size(); ++r) {
    if (!op.results[r].type) continue;
    const auto stated = instantiate_type(context_, *op.results[r].type, local, types);
    if (!stated || *stated == Types::unknown() || (*made)[r] == Types::unknown()) continue;
    const Shape a = context_.types[*stated].shape, b = context_.types[(*made)[r]].shape;
    for (std::size_t k = 0; k < a.size() && a.size() == b.size(); ++k) equations_.equal(a[k], b[k]);
  }
}

/// Replaces `n / k` by a multiple: n becomes k times a new size.
void OpConstraints::whole_fractions(const Expr& expr, const Env& env) {
  for (const Expr& arg : expr.args) whole_fractions(arg, env);
  for (const AttributeArg& attribute : expr.attributes)
    for (const Expr& value : attribute.value) whole_fractions(value, env);
  if (expr.kind != Expr::Kind::binary || (expr.text != "/" && expr.text != "//")) return;
  const auto a = dim_of(expr.args[0], env), b = dim_of(expr.args[1], env);
  if (a && b) equations_.multiple(*a, *b);
}

/// Returns the value that an argument names; null if it names none.
const ValueId* OpConstraints::value_of(const Expr& arg, const Env& env) {
  const auto bound = env.find(arg.text);
  if (arg.kind != Expr::Kind::path || bound == env.end()) return nullptr;
  const auto* value = std::get_if<ValueId>(&bound->second);
  return value != nullptr && value->valid() ? value : nullptr;
}

/// Returns the binding of k in `{k}`.
Result<Attribute> OpConstraints::given(const AttributeArg& attribute, const Env& env) {
  if (!attribute.value.empty()) return evaluate(context_, &graph_, attribute.value[0], env);
  Expr own;
  own.kind = Expr::Kind::path;
  own.text = attribute.name;
  return evaluate(context_, &graph_, own, env);
}

/// Collects the fractions of an op called in a body, as far as operands and attributes are known.
void OpConstraints::fit_called(const Expr& call, const Env& env) {
  const OpId id = context_.ops.find(call.text);
  if (!id.valid() || !context_.ops[id].has_body()) return;
  const Op& op = context_.ops[id];
  Env local;
  for (std::size_t i = 0; i < call.args.size() && i < op.operands.size(); ++i) {
    const ValueId* value = value_of(call.args[i], env);
    if (value == nullptr) continue;
    local.insert_or_assign(op.operands[i].name, *value);
    if (op.operands[i].type) unify(context_, *op.operands[i].type, graph_.type(*value), local);
  }
  for (const AttributeDecl& decl : op.attributes)
    if (decl.default_value) local.insert_or_assign(decl.name, *decl.default_value);
  for (const AttributeArg& attribute : call.attributes) {
    if (const auto value = given(attribute, env)) local.insert_or_assign(attribute.name, *value);
  }
  for (const Statement& statement : op.body) whole_fractions(statement.value, local);
}

/// Visits nested calls of a body. Arguments that are intermediate values are unknown here, and
/// their constraints are skipped.
void OpConstraints::fit_call(const Expr& expr, const Env& env) {
  whole_fractions(expr, env);
  for (const Expr& arg : expr.args) fit_call(arg, env);
  if (expr.kind == Expr::Kind::call) fit_called(expr, env);
  const OpId op = expr.kind == Expr::Kind::call ? context_.ops.find(expr.text) : OpId();
  if (!op.valid() || !among(context_.ops[op].primitive,
                            {Primitive::split, Primitive::reshape, Primitive::index_put}))
    return;
  NodeRequest request;
  request.op = op;
  for (const Expr& arg : expr.args) {
    const ValueId* value = value_of(arg, env);
    if (value == nullptr) break;
    request.operands.push_back(*value);
  }
  if (request.operands.empty()) return;
  for (const AttributeArg& attribute : expr.attributes) {
    const auto made = given(attribute, env);
    if (!made) return;
    request.attributes.emplace_back(context_.strings.intern(attribute.name), *made);
  }
  std::size_t results = 1;
  for (const auto& [key, sizes] : request.attributes)
    if (const auto* list = std::get_if<std::vector<DimId>>(&sizes)) results = list->size();
  fit_attributes(context_.ops[request.op], request, results);
}

}  // namespace pw::proof
