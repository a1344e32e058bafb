#include "graph/foreign.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "import/fx/apply.hpp"
#include "import/fx/convert.hpp"

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

}  // namespace

ForeignValue Converter::foreign_value(const Value& value) const {
  switch (value.kind) {
    case Value::Kind::none: return {};
    case Value::Kind::tensor: return {value.tensor};
    case Value::Kind::integer:
      if (std::optional<std::int64_t> v = context_.dims.value(value.dim)) return {Attribute(*v)};
      return {value.dim};
    case Value::Kind::other: return {Absent{}, text_of(value)};
    case Value::Kind::list:
      if (!value.items.empty() && std::all_of(value.items.begin(), value.items.end(), [](auto& v) {
            return v.kind == Value::Kind::tensor;
          })) {
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
  if (std::optional<Attribute> a = as_any_attribute(context_.dims, value)) return {std::move(*a)};
  return {Absent{}, text_of(value)};
}

// Binds arguments to parameters. Omitted ones stay omitted: the item has their defaults.
std::optional<Bound> Converter::bind_foreign_call(const Mapping& mapping,
                                                  const Arguments& arguments, std::string& why) {
  const ForeignOp& op = *mapping.foreign;
  ForeignArguments given;
  std::vector<const Value*> all;
  const auto read = [&](const Value& value) {
    ForeignValue out = foreign_value(value);
    out.place = all.size();
    all.push_back(&value);
    return out;
  };
  for (const Value& value : arguments.positional) given.positional.push_back(read(value));
  for (const auto& [name, value] : arguments.keywords)
    given.keywords.emplace_back(name, read(value));
  OrReason<ForeignValues> values = bind_foreign(context_, op, given);
  OrReason<Env> env = values ? match_foreign(graph_, op, *values)
                             : OrReason<Env>(tl::unexpected<std::string>(values.error()));
  if (!env) {
    why = env.error();
    return std::nullopt;
  }
  Bound out{&mapping, std::vector<std::optional<Value>>(op.parameters.size()), {}};
  out.env = std::make_shared<const Env>(std::move(*env));
  for (std::size_t i = 0; i < op.parameters.size(); ++i)
    if ((*values)[i]) out.values[i] = *all[(*values)[i]->place];
  return out;
}

// Builds the item's body at the insertion point. PW0511 if a type stated in the dump contradicts
// it.
Result<Results> Converter::build_item(const Bound& bound, const std::vector<Wanted>& wanted,
                                      const Site& site) {
  const ForeignOp& op = *bound.mapping->foreign;
  BuildOptions options;
  options.source = site.source;
  options.group = emitter_.group();
  options.scalars = scalars_of(graph_, *bound.env);
  OrReason<ForeignResults> built = build_foreign(graph_, op, *bound.env, options);
  if (!built) return fail(site.span, "PW0512", built.error());
  Results results = std::move(built->returned);
  for (const auto& [parameter, value] : built->written) {
    const auto at = static_cast<std::size_t>(bound.mapping->parameters[parameter].result);
    if (results.size() <= at) results.resize(at + 1);
    results[at] = value;
  }
  for (ValueId& result : results) {  // a name of its own for what is an argument as it came
    const NodeId maker = result.valid() ? graph_.producer(result) : NodeId();
    if (!result.valid() || (maker.valid() && std::find(built->nodes.begin(), built->nodes.end(),
                                                       maker) != built->nodes.end()))
      continue;
    Result<Results> same = emitter_.emit("detach", {result}, {}, kUnnamed, site);
    if (!same) return same;
    result = same->front();
    built->nodes.push_back(graph_.producer(result));
  }
  for (std::size_t i = 0; i < results.size() && i < wanted.size(); ++i) {
    if (!results[i].valid()) continue;
    Status checked =
        emitter_.check_stated(results[i], wanted[i], op.op.empty() ? op.target : op.op);
    if (checked) continue;
    for (auto it = built->nodes.rbegin(); it != built->nodes.rend(); ++it) graph_.erase(*it);
    return forward(checked);
  }
  for (NodeId node : built->nodes)
    if (const std::string& name = graph_.op_of(node).name; name == "full" || name == "empty")
      effects_.add_maker(graph_.result(node));
  name_results(built->nodes, results, wanted, site);
  return results;
}

Applied Converter::foreign(const Bound& bound, const std::vector<Wanted>& wanted,
                           const Site& site) {
  std::vector<ValueId> tensors;
  for (const auto& [name, value] : *bound.env)
    if (const ValueId* tensor = std::get_if<ValueId>(&value)) tensors.push_back(*tensor);
  Result<Results> built =
      emitter_.with_symbols(tensors, [&] { return build_item(bound, wanted, site); });
  if (built) return std::optional(std::move(*built));
  const std::vector<Mapping>* all = mappings_of(bound.mapping->target);
  if (&all->back() != bound.mapping && built.error().front().code == "PW0511")
    return fail(site.span, "PW0512", built.error().front().message);  // another item may agree
  return forward(built);
}

// Results get their names from the dump; intermediate values are named after the statement.
void Converter::name_results(const std::vector<NodeId>& nodes, const Results& results,
                             const std::vector<Wanted>& wanted, const Site& site) {
  const std::string base = site.result.name.empty() ? "v" : site.result.name;
  for (NodeId node : nodes)
    for (std::size_t i = 0; i < graph_.result_count(node); ++i) {
      const ValueId v = graph_.result(node, i);
      const auto it = std::find(results.begin(), results.end(), v);
      const auto at = static_cast<std::size_t>(it - results.begin());
      if (it != results.end() && at < wanted.size() && !wanted[at].name.empty())
        graph_.rename(v, wanted[at].name);
      else
        graph_.rename(v, names_.fresh(graph_.op_of(node).is_literal() ? "c" : base));
    }
}

// Items of rule files precede the table's own rows; a declaration comes last.
const std::vector<Mapping>* Converter::mappings_of(std::string_view target) {
  if (const std::vector<Mapping>* known = table_.find(target)) return known;
  if (auto declared = declared_foreign(context_, target)) {
    declared_.push_back(declared);
    return table_.add(*declared);
  }
  return nullptr;
}

}  // namespace pw::fx
