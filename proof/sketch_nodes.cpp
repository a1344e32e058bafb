// Adds the pattern's nodes to a general graph, in text order: chooses the types of free operands,
// the bounds of slices and pads, and numbers that the pattern leaves open. Where the pattern
// matches any number, constants of several signs and magnitudes that no rule contains stand for it,
// one case each. Operands that broadcast get one axis for all axes that nothing distinguishes.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "graph/text/text.hpp"
#include "proof/sketch.hpp"

namespace pw::proof {

void Sketch::add_node(const PatternNode& node) {
  const Op& op = context_.ops[node.op];
  Env local;
  NodeRequest request;
  request.op = node.op;
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    if (const ValueId value = values_[node.operands[i]]; value.valid())
      if (const TypeExpr* type = declared(op, i)) fit(*type, graph_.type(value), local, false);
  bind_attributes(node, op, local);
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    request.operands.push_back(operand(node, op, i, local));
  attributes(node, op, request);
  fit_attributes(op, request, node.results.size());
  if (op.has_body()) fit_body(op, request);
  request.result_names.assign(node.results.size(), "");
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    const std::string& name = rule_.values[node.results[i]].name;
    if (name != "_") request.result_names[i] = name.empty() ? name : graph_.fresh_name(name);
  }
  auto made = build_node(graph_, request);
  if (!made) throw Mistyped{made.error().front().message};
  for (std::size_t i = 0; i < node.results.size() && i < graph_.result_count(*made); ++i)
    bind_result(node.results[i], graph_.result(*made, i));
}

void Sketch::bind_result(PatternValueId id, ValueId value) {
  values_[id] = value;
  const PatternValue& pattern = rule_.values[id];
  if (!pattern.name.empty() && pattern.name != "_") env_.insert_or_assign(pattern.name, value);
  for (const TypeExpr& type : pattern.types) fit(type, graph_.type(value), env_, true);
}

void Sketch::bind_attributes(const PatternNode& node, const Op& op, Env& local) {
  for (const PatternAttribute& attribute : node.attributes) {
    const AttributeDecl* decl = op.attribute(attribute.name);
    if (decl == nullptr || decl->kind != AttributeKind::int_ || is_step(decl->name)) continue;
    bind_attribute_names(attribute.value, attribute.name);
    if (const auto value = evaluate(context_, &graph_, attribute.value, env_))
      if (const auto dim = as_dim(*value)) local.insert_or_assign(attribute.name, *dim);
  }
}

void Sketch::bind_attribute_names(const Expr& value, const std::string& attribute) {
  std::vector<std::string> names;
  collect_names(value, names);
  for (const std::string& name : names) {
    if (env_.count(name) != 0) continue;
    const DimId dim = symbol(name);
    may_be_zero(attribute, dim);
    env_.emplace(name, Attribute(dim));
  }
}

/// Returns the lower bound of a size: 0 for slice bounds; negative values are allowed for padding
/// and plain numbers.
void Sketch::may_be_zero(const std::string& attribute, DimId dim) {
  if (attribute == "low" || attribute == "high" || attribute == "value") {
    if (!context_.dims.is_symbol(dim)) return;
    const std::string name = context_.dims.symbols(dim).front();
    constexpr std::int64_t kFar = std::int64_t{1} << 40;
    graph_.facts.symbols.try_emplace(name, SymbolFact{-kFar, kFar, 1, ""});
    integers_.free(name);
    any_.insert(name);
    return;
  }
  if (attribute == "interior") {
    if (!context_.dims.is_symbol(dim)) return;
    const std::string name = context_.dims.symbols(dim).front();
    zero_.insert(name);
    graph_.facts.symbols.try_emplace(name, SymbolFact{0, std::int64_t{1} << 40, 1, ""});
    integers_.free(name);
    integers_.assume(integers_.symbol(name));
    return;
  }
  if (attribute != "start" && attribute != "end" && attribute.find("first") != 0 &&
      attribute.find("last") != 0)
    return;
  if (context_.dims.is_symbol(dim)) {
    const std::string name = context_.dims.symbols(dim).front();
    zero_.insert(name);
    graph_.facts.symbols.try_emplace(name, SymbolFact{0, std::int64_t{1} << 40, 1, ""});
    integers_.free(name);
    integers_.assume(integers_.symbol(name));
  }
  granted_.insert("bounds of slices count from the front and lie inside the axis");
}

ValueId Sketch::operand(const PatternNode& node, const Op& op, std::size_t i, Env& local) {
  const PatternValueId id = node.operands[i];
  const PatternValue& pattern = rule_.values[id];
  if (values_[id].valid()) return values_[id];
  if (pattern.literal_none) return {};
  if (pattern.optional) {
    if (ask(fmt::format("absent {}", id.index), 2) == 1) return {};
  }
  if (pattern.literal) return literal(*pattern.literal);
  if (pattern.attribute_variable) return constant_variable(id);
  const TypeId type = free_type(pattern, node, op, i, local);
  const ValueId input =
      graph_.add_input(graph_.fresh_name(pattern.name.empty() ? "x" : plain_name(pattern.name)),
                       type, InputKind::input);
  bind_result(id, input);
  if (const TypeExpr* text = declared(op, i)) fit(*text, type, local, false);
  return input;
}

ValueId Sketch::literal(const Attribute& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    return add_constant(graph_, static_cast<double>(*integer), DType::i64);
  const auto* real = std::get_if<double>(&value);
  return add_constant(graph_, real == nullptr ? 0 : *real, DType::f64);
}

/// Returns a stand-in for any number: constants of several signs, magnitudes, and orders that no
/// rule contains.
double Sketch::any_number() {
  const int n = ++numbers_;
  switch (ask("numbers", 4)) {
    case 0: return 0.0173205080756887729 + 0.00271828182845904 * n;
    case 1: return 17.320508075688773 / n - 0.0271828182845904;
    case 2: return -3.1622776601683795 + 0.0271828182845904 * n;
    default: return (n % 2 == 0 ? 2.23606797749979 : -1.4142135623730951) / n;
  }
}

ValueId Sketch::constant_variable(PatternValueId id) {
  const double number = any_number();
  const ValueId value = add_constant(graph_, number, DType::f64);
  values_[id] = value;
  env_.insert_or_assign(rule_.values[id].name, Attribute(number));
  return value;
}

TypeId Sketch::free_type(const PatternValue& pattern, const PatternNode& node, const Op& op,
                         std::size_t i, Env& local) {
  std::optional<DType> dtype;
  std::optional<Shape> shape;
  for (const TypeExpr& type : pattern.types) {
    for (const Expr& expr : type.dtype) {
      if (expr.kind != Expr::Kind::path) continue;
      choose_dtype(expr.text, env_, true);
      dtype = dtype_of(expr.text, env_);
    }
    if (type.any_shape || shape) continue;
    for (const Expr& dim : type.dims) bind_names(dim, env_, true);
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
  const TypeExpr* text = declared(op, i);
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
    choose_dtype("any", own, false);
    dtype = dtype_of("any", own);
  }
  return made_type(*dtype, *shape);
}

/// Chooses a dtype that the op declares itself.
void Sketch::choose_like(const std::string& name, const PatternNode&, Env& local) {
  if (local.count(name) != 0) return;
  Env own;
  choose_dtype("any", own, false);
  local.insert_or_assign(name, own.at("any"));
}

std::optional<DType> Sketch::dtype_of(const std::string& name, const Env& env) {
  if (const auto named = dtype_named(name)) return named;
  const auto bound = env.find(name);
  if (bound == env.end()) return std::nullopt;
  const auto* dtype = std::get_if<DTypeBinding>(&bound->second);
  return dtype == nullptr ? std::nullopt : std::optional(dtype->dtype);
}

std::optional<Shape> Sketch::signature_shape(const TypeExpr& text, const PatternNode& node,
                                             const Op& op, std::size_t i, Env& local) {
  const bool open = text.dims.size() == 1 && text.dims[0].kind == Expr::Kind::star &&
                    local.count(text.dims[0].text) == 0;
  if (open) return std::nullopt;
  Shape shape;
  for (const Expr& dim : text.dims) {
    bind_names(dim, local, false);
    if (dim.kind == Expr::Kind::star) {
      const auto bound = local.find(dim.text);
      const auto* known = bound == local.end() ? nullptr : std::get_if<Shape>(&bound->second);
      if (known == nullptr) return std::nullopt;
      shape.insert(shape.end(), known->begin(), known->end());
      continue;
    }
    const auto value = evaluate(context_, &graph_, dim, local);
    const auto size = value ? as_dim(*value) : std::nullopt;
    if (!size) return open_shape(node, op, i);
    shape.push_back(*size);
  }
  return shape;
}

/// `T[*s]` with an unknown `*s`: the axes that the attributes distinguish, plus one for all axes
/// before and one for all after these. With another operand, a shape that broadcasts with it.
Shape Sketch::open_shape(const PatternNode& node, const Op& op, std::size_t i) {
  const std::string base = name_of(node.operands[i], i);
  const bool joined = broadcasts(op) || op.operands.back().variadic;
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    const PatternValueId other = node.operands[k];
    const PatternValue& pattern = rule_.values[other];
    if (!values_[other].valid() || pattern.literal || pattern.attribute_variable) continue;
    const Shape shape = context_.types[graph_.type(values_[other])].shape;
    if (joined)
      return beside(shape, base, op.operands[std::min(i, op.operands.size() - 1)].variadic);
    const TypeExpr* type = declared(op, k);
    const bool sequence =
        type != nullptr && type->dims.size() == 1 && type->dims[0].kind == Expr::Kind::star;
    if (!sequence) continue;
    if (auto same = but_along_axes(node, op, shape, base)) return *same;
  }
  return by_axes(node, op, base);
}

/// Returns another operand's sizes, except along the written axes; nothing if there are none.
std::optional<Shape> Sketch::but_along_axes(const PatternNode& node, const Op& op, Shape shape,
                                            const std::string& base) {
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

std::string Sketch::name_of(PatternValueId id, std::size_t i) const {
  const std::string& name = rule_.values[id].name;
  return name.empty() || name == "_" ? fmt::format("s{}_{}", site_, i) : plain_name(name);
}

Shape Sketch::beside(Shape shape, const std::string& base, bool variadic) {
  if (variadic) return shape;
  granted_.insert("operands that broadcast do so as one of the cases looked at");
  const DimId one = context_.dims.constant(1);
  const std::size_t kind = ask("beside " + base, shape.empty() ? 2 : 3 + shape.size());
  if (kind == 0) return shape;
  if (kind == 1) {
    shape.insert(shape.begin(), symbol(base + "_more"));
    return shape;
  }
  if (kind == 2) return {};
  shape[kind - 3] = one;
  return shape;
}

Shape Sketch::by_axes(const PatternNode& node, const Op& op, const std::string& base) {
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
    if (shape_attribute(op)) return {axis(0), axis(1)};
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
bool Sketch::rank_is_fixed(const PatternNode& node) const {
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
        const TypeExpr* type = declared(context_.ops[reader.op], i);
        if ((type != nullptr && fixed(*type)) || rank_is_fixed(reader)) return true;
      }
  }
  return false;
}

}  // namespace pw::proof
