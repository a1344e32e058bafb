#include "dsl/build/pattern_graph.hpp"

#include <algorithm>

#include "graph/build.hpp"

namespace pw {

const TypeExpr* declared_type(const Op& op, std::size_t operand) {
  if (op.operands.empty()) return nullptr;
  const OperandDecl& declared = op.operands[std::min(operand, op.operands.size() - 1)];
  return declared.type ? &*declared.type : nullptr;
}

std::vector<TypeId> types_of(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<TypeId> types;
  for (ValueId value : values) types.push_back(value.valid() ? graph.type(value) : TypeId());
  return types;
}

TypeId first_operand_type(const Graph& graph, const Rule& rule, const PatternNode& node,
                          const PatternValues& values) {
  for (PatternValueId id : node.operands) {
    const PatternValue& pattern = rule.values[id];
    if (values[id].valid() && !pattern.literal && !pattern.attribute_variable)
      return graph.type(values[id]);
  }
  return {};
}

std::optional<DType> dtype_of(const std::string& name, const Env& env) {
  if (const auto named = dtype_named(name)) return named;
  const auto bound = env.find(name);
  if (bound == env.end()) return std::nullopt;
  const auto* dtype = std::get_if<DTypeBinding>(&bound->second);
  return dtype == nullptr ? std::nullopt : std::optional(dtype->dtype);
}

std::optional<Attribute> value_by_guard(const Graph& graph, const Rule& rule,
                                        const std::string& name, const Env& env,
                                        std::initializer_list<std::string_view> operators) {
  for (const Expr& guard : rule.where) {
    if (guard.kind != Expr::Kind::binary || guard.args.size() != 2) continue;
    if (std::find(operators.begin(), operators.end(), guard.text) == operators.end()) continue;
    for (std::size_t side : {0, 1}) {
      if (guard.args[side].kind != Expr::Kind::path || guard.args[side].text != name) continue;
      if (auto value = evaluate(graph.context(), &graph, guard.args[1 - side], env)) return *value;
    }
  }
  return std::nullopt;
}

bool bind_value(const Graph& graph, const Rule& rule, PatternValueId id, ValueId value,
                PatternValues& values, Env& env) {
  values[id] = value;
  const PatternValue& pattern = rule.values[id];
  if (!pattern.name.empty() && pattern.name != "_") env.insert_or_assign(pattern.name, value);
  bool fits = true;
  for (const TypeExpr& type : pattern.types)
    fits = unify(graph.context(), type, graph.type(value), env) && fits;
  return fits;
}

ValueId add_literal(Graph& graph, const Attribute& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    return add_constant(graph, static_cast<double>(*integer), DType::i64);
  const auto* real = std::get_if<double>(&value);
  return add_constant(graph, real == nullptr ? 0 : *real, DType::f64);
}

std::vector<std::string> result_names(Graph& graph, const Rule& rule, const PatternNode& node) {
  std::vector<std::string> names(node.results.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& stated = rule.values[node.results[i]].name;
    const std::string name = stated.substr(0, stated.find('\''));  // without the ticks of copies
    if (!name.empty() && name != "_") names[i] = graph.fresh_name(name);
  }
  return names;
}

}  // namespace pw
