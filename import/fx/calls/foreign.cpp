#include "import/fx/calls/foreign.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "graph/foreign.hpp"
#include "import/fx/calls/apply.hpp"

namespace pw::fx {
namespace {

std::string text_of(const Value& value) {
  if (value.kind == Value::Kind::other) return value.text;
  return "a list with items other than numbers and tensors";
}

// Returns the common dtype of the given tensors if all have rank 0.
std::optional<DType> scalars_of(const Graph& graph, const Env& env) {
  std::optional<DType> out;
  for (const auto& [name, value] : env) {
    const ValueId* v = std::get_if<ValueId>(&value);
    if (!v || !v->valid()) continue;
    if (graph.type(*v) == Types::unknown()) return std::nullopt;
    const Type& type = graph.context().types[graph.type(*v)];
    if (!type.shape.empty()) return std::nullopt;
    out = out ? promote(*out, false, type.dtype, false) : type.dtype;
  }
  return out;
}

ForeignValue foreign_value(const Dims& dims, const Value& value) {
  switch (value.kind) {
    case Value::Kind::none: return {};
    case Value::Kind::tensor: return {value.tensor};
    case Value::Kind::integer:
      if (std::optional<std::int64_t> v = dims.value(value.dim)) return {Attribute(*v)};
      return {value.dim};
    case Value::Kind::other: return {Absent{}, text_of(value)};
    case Value::Kind::list:
      if (!value.items.empty() &&
          std::ranges::all_of(value.items, [](auto& v) { return v.kind == Value::Kind::tensor; })) {
        std::vector<ValueId> tensors;
        for (const Value& item : value.items) tensors.push_back(item.tensor);
        return {std::move(tensors)};
      }
      [[fallthrough]];
    case Value::Kind::boolean:
    case Value::Kind::real:
    case Value::Kind::string:
    case Value::Kind::dtype: break;
  }
  if (std::optional<Attribute> a = as_any_attribute(dims, value)) return {std::move(*a)};
  return {Absent{}, text_of(value)};
}

// Results get their names from the dump; intermediate values are named after the statement.
void name_results(Emitter& emitter, const std::vector<NodeId>& nodes, const Results& results,
                  const Outputs& wanted, const Site& site) {
  Graph& graph = emitter.graph();
  const std::string base = site.result.name.empty() ? "v" : site.result.name;
  for (NodeId node : nodes)
    for (std::size_t i = 0; i < graph.result_count(node); ++i) {
      const ValueId v = graph.result(node, i);
      const auto it = std::ranges::find(results, v);
      const auto at = static_cast<std::size_t>(it - results.begin());
      if (it != results.end() && at < wanted.size() && !wanted[at].name.empty())
        graph.rename(v, wanted[at].name);
      else
        graph.rename(v, emitter.fresh(graph.op_of(node).is_literal() ? "c" : base));
    }
}

// Builds the item's body at the insertion point. PW0511 if a type stated in the dump contradicts
// it.
Result<Results> build_item(const KnownCall& call) {
  const ForeignOp& op = *call.bound.mapping->foreign;
  Graph& graph = call.emitter.graph();
  BuildOptions options;
  options.source = call.site.source;
  options.group = call.emitter.group();
  options.scalars = scalars_of(graph, *call.bound.env);
  OrReason<ForeignResults> built = build_foreign(graph, op, *call.bound.env, options);
  if (!built) return fail(call.site.span, "PW0512", built.error());
  Results results = std::move(built->returned);
  for (const auto& [parameter, value] : built->written) {
    const auto at = static_cast<std::size_t>(call.bound.mapping->parameters[parameter].result);
    if (results.size() <= at) results.resize(at + 1);
    results[at] = value;
  }
  for (ValueId& result : results) {  // a name of its own for what is an argument as it came
    const NodeId maker = result.valid() ? graph.producer(result) : NodeId();
    if (!result.valid() ||
        (maker.valid() && std::ranges::find(built->nodes, maker) != built->nodes.end()))
      continue;
    Result<Results> same = call.emitter.emit("detach", {result}, {}, kUnnamed, call.site);
    if (!same) return same;
    result = same->front();
    built->nodes.push_back(graph.producer(result));
  }
  for (std::size_t i = 0; i < results.size() && i < call.wanted.size(); ++i) {
    if (!results[i].valid()) continue;
    Status checked =
        call.emitter.check_stated(results[i], call.wanted[i], op.op.empty() ? op.target : op.op);
    if (checked) continue;
    for (auto it = built->nodes.rbegin(); it != built->nodes.rend(); ++it) graph.erase(*it);
    return forward(checked);
  }
  for (NodeId node : built->nodes)
    if (const std::string& name = graph.op_of(node).name; name == "full" || name == "empty")
      call.emitter.effects().add_maker(graph.result(node));
  name_results(call.emitter, built->nodes, results, call.wanted, call.site);
  return results;
}

}  // namespace

std::optional<Bound> bind_foreign_call(Graph& graph, const Mapping& mapping,
                                       const Arguments& arguments, std::string& why) {
  const ForeignOp& op = *mapping.foreign;
  ForeignArguments given;
  std::vector<const Value*> all;
  const auto read = [&](const Value& value) {
    ForeignValue out = foreign_value(graph.context().dims, value);
    out.place = all.size();
    all.push_back(&value);
    return out;
  };
  for (const Value& value : arguments.positional) given.positional.push_back(read(value));
  for (const auto& [name, value] : arguments.keywords)
    given.keywords.emplace_back(name, read(value));
  OrReason<ForeignValues> values = bind_foreign(graph.context(), op, given);
  OrReason<Env> env = values ? match_foreign(graph, op, *values)
                             : OrReason<Env>(tl::unexpected<std::string>(values.error()));
  if (!env) {
    why = env.error();
    return std::nullopt;
  }
  Bound out{&mapping, std::vector<std::optional<Value>>(op.parameters.size()), {}};
  out.env = std::make_shared<const Env>(std::move(*env));
  for (std::size_t i = 0; i < op.parameters.size(); ++i) {
    if ((*values)[i]) out.values[i] = *all[(*values)[i]->place];
    if ((*values)[i] || !mapping.parameters[i].stated) continue;
    why = fmt::format("argument {} is omitted, and its default is another",
                      op.parameters[i].names.front());
    return std::nullopt;
  }
  return out;
}

Applied convert_foreign(const KnownCall& call, bool last) {
  std::vector<ValueId> tensors;
  for (const auto& [name, value] : *call.bound.env)
    if (const ValueId* tensor = std::get_if<ValueId>(&value)) tensors.push_back(*tensor);
  Result<Results> built = call.emitter.with_symbols(tensors, [&] { return build_item(call); });
  if (built) return std::optional(std::move(*built));
  if (!last && built.error().front().code == "PW0511")
    return fail(call.site.span, "PW0512", built.error().front().message);  // another item may agree
  return forward(built);
}

const std::vector<Mapping>* mappings_of(Table& table, Context& context, std::string_view target) {
  if (const std::vector<Mapping>* known = table.find(target)) return known;
  if (std::shared_ptr<const ForeignOp> declared = declared_foreign(context, target)) {
    return table.add(std::move(declared));
  }
  return nullptr;
}

}  // namespace pw::fx
