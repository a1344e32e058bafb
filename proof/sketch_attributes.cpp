// Chooses attributes and the sizes that they imply: lists of axes, sizes of splits and reshapes,
// and the divisibility that the bodies of ops require. An integer attribute becomes a symbol, or,
// where sizes of results are computed from its number, one case for each value from 1 to 3.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "graph/text/text.hpp"
#include "proof/sketch.hpp"

namespace pw::proof {

void Sketch::attributes(const PatternNode& node, const Op& op, NodeRequest& request) {
  std::set<std::string> written;
  for (const PatternAttribute& attribute : node.attributes) {
    const AttributeDecl* decl = op.attribute(attribute.name);
    written.insert(attribute.name);
    request.attributes.emplace_back(context_.strings.intern(attribute.name),
                                    written_value(attribute, decl, request, node.results.size()));
  }
  for (const AttributeDecl& decl : op.attributes) {
    if (written.contains(decl.name)) continue;
    if (decl.default_value && !node.open) continue;
    if (decl.default_value && decl.kind != AttributeKind::bool_ &&
        ask(fmt::format("default {} {}", decl.name, site_), 2) == 0)
      continue;
    request.attributes.emplace_back(
        context_.strings.intern(decl.name),
        any_attribute(fmt::format("{}_{}", decl.name, site_), decl, request, node.results.size()));
  }
}

Attribute Sketch::written_value(const PatternAttribute& attribute, const AttributeDecl* decl,
                                const NodeRequest& request, std::size_t results) {
  std::vector<std::string> names;
  collect_names(attribute.value, names);
  const bool alone = attribute.value.kind == Expr::Kind::path;
  for (const std::string& name : names) {
    if (env_.count(name) != 0) continue;
    if (decl != nullptr && is_step(decl->name)) {
      env_.emplace(name, any_step(name, decl->name));
    } else if (!alone || decl == nullptr) {
      const DimId dim = symbol(name);
      if (decl != nullptr && decl->kind == AttributeKind::int_) {
        may_be_zero(attribute.name, dim);
        env_.emplace(name, Attribute(dim));
      } else {
        env_.emplace(name, dim);
      }
    } else {
      env_.emplace(name, any_attribute(name, *decl, request, results));
    }
  }
  bind_list(attribute, request);
  bind_names(attribute.value, env_, true);
  auto value = evaluate(context_, &graph_, attribute.value, env_);
  if (!value) throw Mistyped{value.error().front().message};
  return *value;
}

void Sketch::bind_list(const PatternAttribute& attribute, const NodeRequest& request) {
  for (const Expr& element : attribute.value.args) {
    if (element.kind != Expr::Kind::star || element.text.empty() || env_.count(element.text) != 0)
      continue;
    const bool paired = std::any_of(repeated_.begin(), repeated_.end(),
                                    [&](const auto& pair) { return pair.second == element.text; });
    const bool grows = attribute.name == "shape" && !paired && !request.operands.empty() &&
                       request.operands[0].valid() &&
                       context_.ops[request.op].primitive == Primitive::expand &&
                       !context_.types[graph_.type(request.operands[0])].shape.empty();
    if (!grows) {
      bind_star(element.text);
      continue;
    }
    Shape shape = context_.types[graph_.type(request.operands[0])].shape;
    const std::size_t others = attribute.value.args.size() - 1;
    if (shape.size() < others) throw Mistyped{"a shape of fewer axes"};
    shape.resize(shape.size() - others);
    env_.emplace(element.text, expanded(shape, element.text));
  }
}

/// 1 to 3: an attribute that the sizes of results are computed with as a number.
Attribute Sketch::any_step(const std::string& name, std::string_view attribute) {
  granted_.insert("steps of slices and convolutions are 1 to 3, paddings 0 to 2");
  const std::size_t least = attribute == "padding" ? 0 : 1;
  return static_cast<std::int64_t>(least + ask("step " + name, 3));
}

bool Sketch::is_step(std::string_view attribute) {
  return attribute == "step" || attribute == "stride" || attribute == "dilation" ||
         attribute == "padding";
}

Attribute Sketch::any_attribute(const std::string& name, const AttributeDecl& decl,
                                const NodeRequest& request, std::size_t results) {
  const Shape first = !request.operands.empty() && request.operands[0].valid()
                          ? context_.types[graph_.type(request.operands[0])].shape
                          : Shape();
  const std::string key = fmt::format("attribute {} {}", name, site_);
  switch (decl.kind) {
    case AttributeKind::float_: return any_number();
    case AttributeKind::bool_: return ask(key, 2) == 1;
    case AttributeKind::str: return "\"" + name + "\"";
    case AttributeKind::dtype: return kDTypes[ask_dtype(key, name)];
    case AttributeKind::axis:
      if (first.empty()) throw Mistyped{"no axis"};
      return static_cast<std::int64_t>(ask(key, first.size()));
    case AttributeKind::int_: {
      if (decl.nullable && ask(key, 2) == 0) return None{};
      if (decl.name == "step") return any_step(key, decl.name);
      const DimId dim = symbol(name);
      may_be_zero(decl.name, dim);
      return dim;
    }
    case AttributeKind::ints:
    case AttributeKind::dims: {
      std::vector<DimId> list;
      if (decl.name == "sizes") {
        for (std::size_t i = 0; i < results; ++i)
          list.push_back(symbol(fmt::format("{}_{}", name, i)));
        return list;
      }
      DimId product = context_.dims.constant(1);
      for (DimId dim : first) product = context_.dims.mul(product, dim);
      if (decl.name == "shape" && !request.operands.empty() &&
          context_.ops[request.op].primitive == Primitive::expand)
        return expanded(first, name);
      if (decl.name == "shape" && !request.operands.empty()) {
        granted_.insert("a shape that nothing is said of is one axis");
        return std::vector<DimId>{product};
      }
      return std::vector<DimId>{symbol(name + "_0")};
    }
    case AttributeKind::floats: return std::vector<double>(results, any_number());
    case AttributeKind::strs: return std::vector<std::string>(results, "x");
  }
  return None{};
}

bool Sketch::broadcasts(const Op& op) {
  if (op.results.empty() || !op.results[0].type) return false;
  const std::vector<Expr>& dims = op.results[0].type->dims;
  return dims.size() == 1 && dims[0].kind == Expr::Kind::call && dims[0].text == "broadcast";
}

/// Requires corresponding axes of broadcast operands to be equal, or one of them to have size 1.
void Sketch::fit_broadcast(const Op& op, const NodeRequest& request) {
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
      const std::size_t kind = free ? ask(fmt::format("meets {} {} {}", site_, i, k), 3) : 0;
      if (kind == 0) equal(from, to);
      if (kind == 1) equal(from, one);
      if (kind == 2) equal(to, one);
    }
  }
}

/// Requires scattered values to match the sizes of all other axes.
void Sketch::fit_put(const Op& op, const NodeRequest& request, const Attribute* dim) {
  if (op.primitive != Primitive::index_put || request.operands.size() < 2) return;
  const Shape to = context_.types[graph_.type(request.operands[0])].shape,
              values = context_.types[graph_.type(request.operands[1])].shape;
  const auto axis = axis_of(dim, to.size());
  if (!axis || to.size() != values.size()) return;
  for (std::size_t k = 0; k < to.size(); ++k)
    if (k != *axis && context_.dims.value(values[k]) != 1) equal(to[k], values[k]);
}

void Sketch::fit_cat(const Op& op, const NodeRequest& request, const Attribute* dim) {
  if (op.primitive != Primitive::cat) return;
  const Shape first = context_.types[graph_.type(request.operands[0])].shape;
  const auto axis = axis_of(dim, first.size());
  for (ValueId value : request.operands) {
    const Shape other = context_.types[graph_.type(value)].shape;
    for (std::size_t k = 0; axis && k < first.size() && other.size() == first.size(); ++k)
      if (k != *axis) equal(first[k], other[k]);
  }
}

/// Derives the operand's sizes from those of a split or reshape.
void Sketch::fit_attributes(const Op& op, const NodeRequest& request, std::size_t results) {
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
    equal(shape[*axis], sum);
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
      multiple(a, b);
    else
      equal(a, b);
  }
}

/// Imposes the size constraints of an op's body: fractions are integers, parts add up to their
/// operand, and results have the sizes of the signature.
void Sketch::fit_body(const Op& op, const NodeRequest& request) {
  Env local;
  std::vector<TypeId> types;
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    const ValueId value = request.operands[i];
    types.push_back(value.valid() ? graph_.type(value) : TypeId());
    if (const TypeExpr* type = declared(op, i); type != nullptr && value.valid())
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
    for (std::size_t k = 0; k < a.size() && a.size() == b.size(); ++k) equal(a[k], b[k]);
  }
}

void Sketch::whole_fractions(const Expr& expr, const Env& env) {
  for (const Expr& arg : expr.args) whole_fractions(arg, env);
  for (const AttributeArg& attribute : expr.attributes)
    for (const Expr& value : attribute.value) whole_fractions(value, env);
  if (expr.kind != Expr::Kind::binary || (expr.text != "/" && expr.text != "//")) return;
  const auto over = evaluate(context_, &graph_, expr.args[0], env);
  const auto under = evaluate(context_, &graph_, expr.args[1], env);
  if (!over || !under) return;
  const auto a = as_dim(*over), b = as_dim(*under);
  if (a && b) multiple(*a, *b);
}

/// Returns the value that an argument names; null if it names none.
const ValueId* Sketch::value_of(const Expr& arg, const Env& env) {
  const auto bound = env.find(arg.text);
  if (arg.kind != Expr::Kind::path || bound == env.end()) return nullptr;
  const auto* value = std::get_if<ValueId>(&bound->second);
  return value != nullptr && value->valid() ? value : nullptr;
}

/// Returns the binding of k in `{k}`.
Result<Attribute> Sketch::given(const AttributeArg& attribute, const Env& env) {
  if (!attribute.value.empty()) return evaluate(context_, &graph_, attribute.value[0], env);
  Expr own;
  own.kind = Expr::Kind::path;
  own.text = attribute.name;
  return evaluate(context_, &graph_, own, env);
}

/// Collects the fractions of an op called in a body, as far as operands and attributes are known.
void Sketch::fit_called(const Expr& call, const Env& env) {
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

void Sketch::fit_call(const Expr& expr, const Env& env) {
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

std::optional<std::size_t> Sketch::axis_of(const Attribute* value, std::size_t rank) {
  const auto* axis = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
  if (axis == nullptr) return std::nullopt;
  const auto r = static_cast<std::int64_t>(rank);
  const std::int64_t at = *axis < 0 ? *axis + r : *axis;
  if (at < 0 || at >= r) return std::nullopt;
  return static_cast<std::size_t>(at);
}

}  // namespace pw::proof
