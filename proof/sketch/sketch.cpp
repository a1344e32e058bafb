// Builds a general left side, node by node. Each dim variable of the pattern becomes a symbol, and
// each type annotation is unified with the inferred type.
// This is type inference in reverse: instead of checking a given graph, it finds the most general
// types for which the pattern is well typed. As in unification, an equation eliminates one symbol
// everywhere; the construction then runs again from its first node.
#include "proof/sketch/sketch.hpp"

#include <algorithm>

#include "graph/text/text.hpp"

namespace pw::proof {

Sketch::Sketch(SketchState& state)
    : SketchPart(state),
      equations_(state),
      sequences_(state, equations_),
      dtypes_(state),
      operand_types_(state, dtypes_, sequences_),
      attributes_(state, dtypes_, sequences_),
      constraints_(state, equations_) {
  for (auto& [name, binding] : env_) {
    const auto* attribute = std::get_if<Attribute>(&binding);
    if (attribute != nullptr && std::holds_alternative<std::int64_t>(*attribute) && read(name))
      binding = Attribute(symbol(name));
  }
  for (const auto& [name, binding] : rule_.constants) env_.insert_or_assign(name, binding);
}

/// Guards follow the nodes, because they name sizes that the nodes bind.
Graph Sketch::build() {
  for (const Expr& guard : rule_.where) equal_dims(guard, true);
  for (std::size_t i = 0; i < rule_.nodes.size(); ++i) {
    site_ = i;
    add_node(rule_.nodes[PatternNodeId(i)]);
  }
  for (const Expr& guard : rule_.where) equal_dims(guard, false);
  for (const Expr& guard : rule_.assume) equal_dims(guard, false);
  for (const auto* list : {&rule_.where, &rule_.assume})
    for (const Expr& guard : *list) admit(guard);
  replicate();
  return std::move(graph_);
}

/// Returns true if the rule reads a param where its value matters: in a guard or an attribute.
bool Sketch::read(const std::string& param) const {
  std::vector<std::string> names;
  for (const auto* list : {&rule_.where, &rule_.assume})
    for (const Expr& guard : *list) collect_paths(guard, names);
  for (const PatternNode& node : rule_.nodes)
    for (const PatternAttribute& attribute : node.attributes) collect_paths(attribute.value, names);
  return std::find(names.begin(), names.end(), param) != names.end();
}

/// Solves guards such as `hd == 2 * r` and `n % world == 0` for a size.
void Sketch::equal_dims(const Expr& guard, bool early) {
  if (guard.kind == Expr::Kind::binary && guard.text == "and") {
    for (const Expr& arg : guard.args) equal_dims(arg, early);
    return;
  }
  if (guard.kind != Expr::Kind::binary || guard.text != "==" || early) return;
  const Expr& left = guard.args[0];
  if (left.kind == Expr::Kind::binary && left.text == "%") {
    const auto zero = dim_of(guard.args[1], env_), a = dim_of(left.args[0], env_),
               b = dim_of(left.args[1], env_);
    if (zero && a && b && context_.dims.value(*zero) == 0) equations_.multiple(*a, *b);
    return;
  }
  const auto a = dim_of(left, env_), b = dim_of(guard.args[1], env_);
  if (a && b && *a != *b && (!context_.dims.value(*a) || !context_.dims.value(*b)))
    equations_.equal(*a, *b);
}

/// Evaluates a guard on numbers of this case, such as axes: it holds or it does not.
void Sketch::admit(const Expr& guard) {
  if (guard.kind != Expr::Kind::binary || guard.args.size() != 2) return;
  if (guard.text == "and") {
    for (const Expr& arg : guard.args) admit(arg);
    return;
  }
  const auto a = number_of(guard.args[0]), b = number_of(guard.args[1]);
  if (!a || !b) return;
  const bool refused = (guard.text == "==" && *a != *b) || (guard.text == "!=" && *a == *b) ||
                       (guard.text == "<" && *a >= *b) || (guard.text == "<=" && *a > *b) ||
                       (guard.text == ">" && *a <= *b) || (guard.text == ">=" && *a < *b);
  if (refused) throw Mistyped{"its guards contradict each other"};
}

/// Returns the value of an integer, or of a variable bound to one.
std::optional<std::int64_t> Sketch::number_of(const Expr& expr) const {
  if (expr.kind == Expr::Kind::integer) return expr.integer;
  const auto bound = env_.find(expr.text);
  if (expr.kind != Expr::Kind::path || bound == env_.end()) return std::nullopt;
  const auto* attribute = std::get_if<Attribute>(&bound->second);
  const auto* number = attribute == nullptr ? nullptr : std::get_if<std::int64_t>(attribute);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

/// Solves for sizes of a known type by its annotation, then unifies the rest.
void Sketch::fit(const TypeExpr& text, TypeId type, Env& env, bool own) {
  if (type == Types::unknown()) return;
  const Type actual = context_.types[type];
  if (!text.any_shape) {
    const auto stars = std::count_if(text.dims.begin(), text.dims.end(),
                                     [](const Expr& e) { return e.kind == Expr::Kind::star; });
    if (stars <= 1) fit_dims(text, actual.shape, env, own);
  }
  std::string why;
  if (!unify(context_, text, type, env, &why)) throw Mistyped{why};
}

/// A dim expression of one free name binds it; any other expression becomes an equation. Example:
/// the type [n, 2 * k] on a value of sizes [a, b] binds n to a and requires 2 k = b.
void Sketch::fit_dims(const TypeExpr& text, const Shape& shape, Env& env, bool own) {
  const std::size_t count = text.dims.size();
  std::size_t star = count;
  for (std::size_t i = 0; i < count; ++i)
    if (text.dims[i].kind == Expr::Kind::star) star = i;
  if (star == count ? shape.size() != count : shape.size() + 1 < count)
    throw Mistyped{fmt::format("rank {} for {}", shape.size(), print(text))};
  const std::size_t length = star == count ? 0 : shape.size() + 1 - count;
  for (std::size_t i = 0; i < count; ++i) {
    if (i == star) continue;
    const DimId actual = shape[i < star ? i : i + length - 1];
    const Expr& dim = text.dims[i];
    if (dim.kind == Expr::Kind::path && env.count(dim.text) == 0 && !dtype_named(dim.text)) {
      env.emplace(dim.text, actual);
      continue;
    }
    sequences_.bind_names(dim, env, own);
    if (const auto wanted = dim_of(dim, env)) equations_.equal(*wanted, actual);
  }
  if (star == count || text.dims[star].text.empty()) return;
  const auto bound = env.find(text.dims[star].text);
  if (bound == env.end()) return;
  const auto* known = std::get_if<Shape>(&bound->second);
  if (known == nullptr || known->size() != length) return;
  for (std::size_t i = 0; i < length; ++i) equations_.equal((*known)[i], shape[star + i]);
}

/// Declares the inputs in a guard `replicated(x, group)`.
void Sketch::replicate() {
  for (const auto* list : {&rule_.where, &rule_.assume})
    for (const Expr& guard : *list) replicate(guard);
}

void Sketch::replicate(const Expr& guard) {
  if (guard.kind == Expr::Kind::binary && guard.text == "and")
    for (const Expr& arg : guard.args) replicate(arg);
  if (guard.kind != Expr::Kind::call || guard.text != "replicated" || guard.args.size() != 2)
    return;
  const auto found = env_.find(guard.args[0].text);
  const auto group = evaluate(context_, &graph_, guard.args[1], env_);
  if (found == env_.end() || !group) return;
  const auto* value = std::get_if<ValueId>(&found->second);
  const auto* name = std::get_if<std::string>(&*group);
  if (value != nullptr && name != nullptr && graph_.is_input(*value))
    graph_.declare_replicated(*value, *name);
}

/// Operands that exist bind names of the op's signature before those that are created, so that `k`
/// of mm(x: [m, k], w: [k, n]) is one symbol.
void Sketch::add_node(const PatternNode& node) {
  const Op& op = context_.ops[node.op];
  Env local;
  NodeRequest request;
  request.op = node.op;
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    if (const ValueId value = values_[node.operands[i]]; value.valid())
      if (const TypeExpr* type = declared_type(op, i)) fit(*type, graph_.type(value), local, false);
  attributes_.bind_attributes(node, op, local);
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    request.operands.push_back(operand(node, op, i, local));
  attributes_.add(node, op, request);
  constraints_.fit_attributes(op, request, node.results.size());
  if (op.has_body()) constraints_.fit_body(op, request);
  request.result_names = result_names(graph_, rule_, node);
  auto made = build_node(graph_, request);
  if (!made) throw Mistyped{made.error().front().message};
  for (std::size_t i = 0; i < node.results.size() && i < graph_.result_count(*made); ++i)
    bind_result(node.results[i], graph_.result(*made, i));
}

/// All annotations of a value apply, also those of later occurrences.
void Sketch::bind_result(PatternValueId id, ValueId value) {
  values_[id] = value;
  const PatternValue& pattern = rule_.values[id];
  if (!pattern.name.empty() && pattern.name != "_") env_.insert_or_assign(pattern.name, value);
  for (const TypeExpr& type : pattern.types) fit(type, graph_.type(value), env_, true);
}

/// Returns the operand's value; invalid if it is absent. An optional operand is a choice of two
/// cases.
ValueId Sketch::operand(const PatternNode& node, const Op& op, std::size_t i, Env& local) {
  const PatternValueId id = node.operands[i];
  const PatternValue& pattern = rule_.values[id];
  if (values_[id].valid()) return values_[id];
  if (pattern.literal_none) return {};
  if (pattern.optional) {
    if (ask(fmt::format("absent {}", id.index), 2) == 1) return {};
  }
  if (pattern.literal) return add_literal(graph_, *pattern.literal);
  if (pattern.attribute_variable) return constant_variable(id);
  const TypeId type = operand_types_.type_of(pattern, node, op, i, local);
  const ValueId input =
      graph_.add_input(graph_.fresh_name(pattern.name.empty() ? "x" : plain_name(pattern.name)),
                       type, InputKind::input);
  bind_result(id, input);
  if (const TypeExpr* text = declared_type(op, i)) fit(*text, type, local, false);
  return input;
}

/// A variable that matches any constant: numbers stand for it, see CaseAttributes::any_number.
ValueId Sketch::constant_variable(PatternValueId id) {
  const double number = attributes_.any_number();
  const ValueId value = add_constant(graph_, number, DType::f64);
  values_[id] = value;
  env_.insert_or_assign(rule_.values[id].name, Attribute(number));
  return value;
}

}  // namespace pw::proof
