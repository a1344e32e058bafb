#include <algorithm>

#include <fmt/format.h>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "graph/build.hpp"
#include "graph/same_type.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

constexpr int kMaxBodyDepth = 32;

/// Wraps a context that outlives the graphs made with it, without owning it.
ContextPtr borrow(Context& context) { return ContextPtr(std::shared_ptr<void>(), &context); }

Result<ValueId> body_result(const Op& op, std::size_t index, const Env& env) {
  const ResultDecl& decl = op.results[index];
  std::string name = decl.name;
  if (name.empty()) {  // an unnamed result is what the last statement binds
    const Statement& last = op.body.back();
    if (index < last.binders.size()) name = last.binders[index].name;
  }
  auto it = env.find(name);
  auto value = it == env.end() ? nullptr : std::get_if<ValueId>(&it->second);
  if (!value)
    return fail(decl.span.valid() ? decl.span : op.span, "PW0331",
                fmt::format("the body of op `{}` does not bind its result `{}`", op.name, name));
  return *value;
}

}  // namespace

Result<Meaning> instantiate_body(Context& context, OpId op_id, std::span<const TypeId> operands,
                                 AttributesId attributes, const Facts& facts) {
  const Op op = context.ops[op_id];
  PW_ASSERT(op.has_body(), "op `" + op.name + "` has no body");
  Meaning meaning{Graph(borrow(context), op.name), {}};
  meaning.graph.facts = facts;
  Env env;
  for (const auto& [name, value] : context.attributes[attributes])
    env.emplace(std::string(context.strings.text(name)), value);
  std::vector<ValueId> list;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const OperandDecl& decl = op.operands[std::min(i, op.operands.size() - 1)];
    if (!operands[i].valid()) {
      env.insert_or_assign(decl.name, Absent{});
      continue;
    }
    std::string why;
    Env trial;
    if (decl.type && !unify(context, *decl.type, operands[i], decl.variadic ? trial : env, &why))
      return fail(decl.span, "PW0306",
                  fmt::format("op `{}`: operand `{}` is {}, not {}", op.name, decl.name,
                              context.types.print(operands[i]), print(*decl.type)));
    ValueId v = meaning.graph.add_input(
        decl.variadic ? decl.name + "_" + std::to_string(list.size()) : decl.name, operands[i],
        InputKind::input);
    meaning.operand_of_input.push_back(static_cast<int>(i));
    if (decl.variadic)
      list.push_back(v);
    else
      env.insert_or_assign(decl.name, v);
  }
  if (!op.operands.empty() && op.operands.back().variadic)
    env.insert_or_assign(op.operands.back().name, list);
  PW_TRY(build_statements(meaning.graph, op.body, env));
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    ValueId result = PW_TRY(body_result(op, i, env));
    meaning.graph.add_output(result);
  }
  meaning.graph.erase_dead();
  return meaning;
}

Result<std::vector<TypeId>> body_types(Context& context, OpId op, std::span<const TypeId> operands,
                                       AttributesId attributes) {
  Meaning meaning = PW_TRY(instantiate_body(context, op, operands, attributes, {}));
  std::vector<TypeId> types;
  for (ValueId v : meaning.graph.outputs()) types.push_back(meaning.graph.type(v));
  return types;
}

Result<std::vector<NodeId>> inline_node(Graph& graph, NodeId node) {
  std::vector<TypeId> types;
  for (ValueId v : graph.operands(node)) types.push_back(v.valid() ? graph.type(v) : TypeId());
  Meaning meaning = PW_TRY(instantiate_body(graph.context(), graph.op(node), types,
                                            graph.attributes(node), graph.facts));
  const Graph& body = meaning.graph;
  std::vector<ValueId> map(body.value_bound());
  for (std::size_t i = 0; i < body.inputs().size(); ++i)
    map[body.inputs()[i].index] =
        graph.operand(node, static_cast<std::size_t>(meaning.operand_of_input[i]));
  NodeId saved = graph.insertion_point();
  graph.insert_before(node);
  std::vector<NodeId> made;
  std::string prefix = std::string(graph.node_name(node)) + ".";
  for (NodeId n = body.first(); n.valid(); n = body.next(n)) {
    NodeSpec spec;
    spec.op = body.op(n);
    spec.attributes = body.attributes(n);
    spec.group = graph.group(node);
    spec.source = graph.source(node);
    for (ValueId v : body.operands(n))
      spec.operands.push_back(v.valid() ? map[v.index] : ValueId());
    for (std::size_t i = 0; i < body.result_count(n); ++i)
      spec.results.push_back(
          {body.type(body.result(n, i)), prefix + std::string(body.value_name(body.result(n, i)))});
    NodeId copy = graph.add_node(spec);
    for (std::size_t i = 0; i < body.result_count(n); ++i)
      map[body.result(n, i).index] = graph.result(copy, i);
    made.push_back(copy);
  }
  std::vector<std::pair<ValueId, std::string>> renames;
  for (std::size_t i = 0; i < graph.result_count(node); ++i) {
    ValueId old = graph.result(node, i), replacement = map[body.outputs()[i].index];
    bool fresh = !graph.is_input(replacement) &&
                 std::find(made.begin(), made.end(), graph.producer(replacement)) != made.end();
    const bool same =
        same_type(graph.context(), graph.type(old), graph.type(replacement), graph.facts);
    if (fresh && same)
      graph.set_type(replacement, graph.type(old));  // the type that its users have seen
    if (!same && graph.type(old) != Types::unknown())
      return fail(graph.op_of(node).span, "PW0332",
                  fmt::format("op `{}` declares a result {}, but its body gives {}",
                              graph.op_of(node).name, graph.context().types.print(graph.type(old)),
                              graph.context().types.print(graph.type(replacement))));
    if (fresh) renames.emplace_back(replacement, graph.value_name(old));
    graph.replace_uses(old, replacement);
  }
  graph.insert_before(saved == node ? graph.next(node) : saved);
  graph.erase(node);
  for (const auto& [value, name] : renames) graph.rename(value, name);
  return made;
}

Status inline_bodies(Graph& graph) {
  std::vector<std::pair<NodeId, int>>
      work;  // a stack, so that the first node of the order is on top
  std::vector<NodeId> order = graph.order();
  for (auto it = order.rbegin(); it != order.rend(); ++it) work.emplace_back(*it, 0);
  while (!work.empty()) {
    auto [node, depth] = work.back();
    work.pop_back();
    if (!graph.op_of(node).has_body()) continue;
    if (depth > kMaxBodyDepth)
      return fail(graph.op_of(node).span, "PW0333",
                  "the body of op `" + graph.op_of(node).name +
                      "` calls itself, directly or through others");
    std::vector<NodeId> made = PW_TRY(inline_node(graph, node));
    for (auto it = made.rbegin(); it != made.rend(); ++it) work.emplace_back(*it, depth + 1);
  }
  return {};
}

}  // namespace pw
