#include "dsl/build/stand_ins.hpp"

#include <optional>

#include "dsl/build/pattern_graph.hpp"
#include "dsl/build/unroll.hpp"

namespace pw {
namespace {

std::optional<Attribute> stand_in(const AttributeDecl& decl) {
  if (decl.kind == AttributeKind::float_) return Attribute(0.5);
  if (decl.kind == AttributeKind::str) return Attribute(std::string("any"));
  return {};
}

std::optional<Attribute> evaluated(Context& context, const Graph& graph, const Expr& expr,
                                   const Env& env) {
  auto value = evaluate(context, &graph, expr, env);
  if (!value) return {};
  return *value;
}

}  // namespace

StandIns::StandIns(const CheckedRule& of, const Rule& pattern, std::size_t length)
    : checked(of), rule(pattern), context(*of.shared), graph(of.shared), length_(length) {}

void StandIns::bind_variables() {
  for (const auto& [text, name] : checked.names.names) {
    if (env.contains(text)) continue;
    if (name.list) {
      bind_elements(text, name.kind);
      continue;
    }
    if (name.kind == NameKind::dtype) env.emplace(text, DTypeBinding{DType::bf16, false});
    if (name.kind == NameKind::dim) env.emplace(text, context.dims.symbol(text));
    if (name.kind == NameKind::sequence)
      env.emplace(text, Shape{context.dims.symbol(text + ".0"), context.dims.symbol(text + ".1")});
  }
}

/// Binds the elements of a list: dims one by one for the left side, together for the right.
void StandIns::bind_elements(const std::string& text, NameKind kind) {
  if (kind != NameKind::dim && kind != NameKind::attribute) return;
  Shape all;
  for (std::size_t k = 0; k < length_; ++k) {
    all.push_back(context.dims.symbol(element_name(text, k)));
    env.emplace(element_name(text, k), all.back());
  }
  env.emplace(text, std::move(all));
}

void StandIns::bind_lists() {
  for (const std::string& name : checked.rule->lists) {
    if (env.contains(name)) continue;
    std::vector<ValueId> values;
    for (std::size_t k = 0; k < length_; ++k) {
      const auto element = env.find(element_name(name, k));
      if (element == env.end()) break;
      if (const auto* value = std::get_if<ValueId>(&element->second)) values.push_back(*value);
    }
    if (values.size() == length_) env.emplace(name, std::move(values));
  }
}

void StandIns::bind_param(const std::string& name, const ast::Param& param) {
  if (!param.value) return;
  auto value = evaluate(context, nullptr, *param.value, {});
  if (value) env.emplace(name, *value);
}

/// Binds T to bf16 for `T in {bf16, f16}`.
void StandIns::bind_choice(const Expr& guard) {
  if (guard.kind != Expr::Kind::in_set || guard.args.size() < 2 ||
      guard.args[0].kind != Expr::Kind::path)
    return;
  const Name* name = checked.names.find(guard.args[0].text);
  auto dtype = dtype_named(guard.args[1].text);
  if (name != nullptr && guard.args[1].kind == Expr::Kind::path && dtype)
    env.emplace(guard.args[0].text, DTypeBinding{*dtype, false});
}

bool StandIns::build_left(const DTypeChoice& dtypes, const DimChoice& dims) {
  for (const auto& [name, dtype] : dtypes) env.emplace(name, DTypeBinding{dtype, false});
  for (const auto& [name, dim] : dims) env.emplace(name, dim);
  for (const auto& [name, param] : checked.program.params) bind_param(name, *param);
  for (const Expr& guard : rule.where) bind_choice(guard);
  bind_variables();
  values_.assign(rule.values.size(), ValueId());
  for (std::size_t i = 0; i < rule.values.size(); ++i) {
    if (!rule.values[PatternValueId(i)].producer.valid() && !add_free(PatternValueId(i)))
      return false;
  }
  for (const PatternNode& node : rule.nodes) {
    if (node.negation < 0 && !add_node(node)) return false;
  }
  bind_lists();
  return true;
}

bool StandIns::add_free(PatternValueId id) {
  const PatternValue& value = rule.values[id];
  if (value.literal_none) return true;
  if (value.literal) {
    const bool number = std::holds_alternative<std::int64_t>(*value.literal) ||
                        std::holds_alternative<double>(*value.literal);
    if (number) values_[id.index] = add_literal(graph, *value.literal);
    return number;
  }
  if (value.attribute_variable) {
    values_[id.index] = add_constant(graph, 0.5, DType::f64);
    env.insert_or_assign(value.name, Attribute(0.5));
    return true;
  }
  const ValueId input = graph.add_input(graph.fresh_name(value.name.empty() ? "_" : value.name),
                                        type_of(value), InputKind::input);
  values_[id.index] = input;
  if (!value.name.empty()) env.insert_or_assign(value.name, input);
  return true;
}

TypeId StandIns::type_of(const PatternValue& value) {
  for (const TypeExpr& type : value.types) {
    if (type.any_shape || type.dtype.empty()) continue;
    if (auto found = instantiate_type(context, type, env)) return *found;
  }
  return Types::unknown();
}

bool StandIns::add_node(const PatternNode& node) {
  NodeRequest request;
  request.op = node.op;
  for (PatternValueId operand : node.operands) request.operands.push_back(values_[operand.index]);
  if (!add_attributes(node, request)) return false;
  for (std::size_t i = 0; i < node.results.size(); ++i) request.result_names.emplace_back();
  auto built = build_node(graph, request);
  if (!built) return false;
  open_attributes.emplace(context.ops[node.op].name, graph.attributes(*built));
  for (std::size_t i = 0; i < node.results.size() && i < graph.result_count(*built); ++i) {
    const PatternValue& value = rule.values[node.results[i]];
    values_[node.results[i].index] = graph.result(*built, i);
    if (!value.name.empty()) env.insert_or_assign(value.name, graph.result(*built, i));
  }
  return true;
}

bool StandIns::add_attributes(const PatternNode& node, NodeRequest& request) {
  const Op& op = context.ops[node.op];
  for (const PatternAttribute& attribute : node.attributes) {
    const AttributeDecl* decl = op.attribute(attribute.name);
    if (decl == nullptr) return false;
    const bool captures =
        attribute.value.kind == Expr::Kind::path && !env.contains(attribute.value.text);
    if (captures && attribute.value.text != "_" && stand_in(*decl))
      env.emplace(attribute.value.text, *stand_in(*decl));
    auto value = captures && attribute.value.text == "_"
                     ? stand_in(*decl)
                     : evaluated(context, graph, attribute.value, env);
    if (!value) return false;
    request.attributes.emplace_back(context.strings.intern(attribute.name), *value);
  }
  return !node.open || open(op, node, request);
}

/// Opens attributes. They may hold any value, so only those that types do not depend on can be
/// replaced.
bool StandIns::open(const Op& op, const PatternNode& node, NodeRequest& request) {
  for (const AttributeDecl& decl : op.attributes) {
    bool written = false;
    for (const PatternAttribute& attribute : node.attributes)
      written = written || attribute.name == decl.name;
    if (written) continue;
    auto value = stand_in(decl);
    if (!value) return false;
    request.attributes.emplace_back(context.strings.intern(decl.name), *value);
  }
  return true;
}

bool StandIns::refuted() {
  for (const Expr& guard : rule.where) {
    auto truth = evaluate_guard(context, &graph, guard, env, graph.facts);
    if (truth && *truth == Truth::no) return true;
  }
  return false;
}

bool StandIns::dtypes_agree() {
  for (std::size_t i = 0; i < rule.values.size(); ++i) {
    const PatternValue& value = rule.values[PatternValueId(i)];
    if (!value.producer.valid() || !values_[i].valid()) continue;
    const TypeId type = graph.type(values_[i]);
    for (const TypeExpr& stated : value.types) {
      if (type == Types::unknown() || stated.dtype.empty()) continue;
      auto wanted = evaluate(context, nullptr, stated.dtype.front(), env);
      const auto* dtype = wanted ? std::get_if<DType>(&*wanted) : nullptr;
      if (dtype != nullptr && *dtype != context.types[type].dtype) return false;
    }
  }
  return true;
}

}  // namespace pw
