// Exports the part of Converter for targets that rule files say the meaning of: `foreign` items and
// declarations of ops of the same name.
#include <algorithm>

#include <fmt/format.h>

#include "graph/import/foreign.hpp"
#include "graph/import/fx_convert.hpp"

namespace pw::fx {
namespace {

std::string text_of(const Value& value) {
  if (value.kind == Value::Kind::other) return value.text;
  return "a list of more than numbers or tensors";
}

}  // namespace

ForeignValue Converter::foreign_value(const Value& value) const {
  switch (value.kind) {
    case Value::Kind::none: return {};
    case Value::Kind::tensor: return {value.tensor, ""};
    case Value::Kind::integer:
      if (std::optional<std::int64_t> v = context_.dims.value(value.dim)) return {Attribute(*v), ""};
      return {value.dim, ""};
    case Value::Kind::other: return {Absent{}, text_of(value)};
    case Value::Kind::list:
      if (!value.items.empty() && std::all_of(value.items.begin(), value.items.end(), [](auto& v) {
            return v.kind == Value::Kind::tensor;
          })) {
        std::vector<ValueId> tensors;
        for (const Value& item : value.items) tensors.push_back(item.tensor);
        return {std::move(tensors), ""};
      }
      [[fallthrough]];
    case Value::Kind::boolean:
    case Value::Kind::real:
    case Value::Kind::string:
    case Value::Kind::dtype: break;
  }
  if (std::optional<Attribute> a = as_any_attribute(value)) return {std::move(*a), ""};
  return {Absent{}, text_of(value)};
}

ForeignArguments Converter::foreign_arguments(const Arguments& arguments) const {
  ForeignArguments out;
  for (const Value& value : arguments.positional) out.positional.push_back(foreign_value(value));
  for (const auto& [name, value] : arguments.keywords)
    out.keywords.emplace_back(name, foreign_value(value));
  return out;
}

// The arguments by parameter. What was left out stays so: the item knows its defaults.
std::optional<Bound> Converter::bind_foreign_call(const Mapping& mapping,
                                                  const Arguments& arguments) {
  const ForeignOp& op = *mapping.foreign;
  OrReason<ForeignValues> values = bind_foreign(context_, op, foreign_arguments(arguments));
  OrReason<Env> env = values ? match_foreign(graph_, op, *values)
                             : OrReason<Env>(tl::unexpected<std::string>(values.error()));
  if (!env) {
    reason_ = env.error();
    return std::nullopt;
  }
  Bound out{&mapping, std::vector<std::optional<Value>>(op.parameters.size()), {}};
  out.env = std::make_shared<Env>(std::move(*env));
  for (std::size_t i = 0; i < op.parameters.size(); ++i) {
    const ValueId* tensor = (*values)[i] ? std::get_if<ValueId>(&(*values)[i]->value) : nullptr;
    if (tensor) out.values[i] = Converter::tensor(*tensor);
  }
  return out;
}

Applied Converter::foreign(const Bound& bound, const std::vector<Wanted>& wanted,
                           const Site& site) {
  const ForeignOp& op = *bound.mapping->foreign;
  const auto attempt = [&](bool& contradiction) -> Result<Results> {
    BuildOptions options;
    options.source = site.source;
    contradiction = false;
    OrReason<ForeignResults> built = build_foreign(graph_, op, *bound.env, options);
    if (!built) return fail(site.span, "PW0512", built.error());
    Results results = std::move(built->returned);
    for (const auto& [parameter, value] : built->written) results.push_back(value);
    for (ValueId& result : results) {  // a name of its own for what is an argument as it came
      const NodeId maker = graph_.producer(result);
      if (maker.valid() && std::find(built->nodes.begin(), built->nodes.end(), maker) !=
                               built->nodes.end())
        continue;
      Result<Results> same = emit("detach", {result}, {}, std::vector<Wanted>(1), site);
      if (!same) return same;
      result = same->front();
      built->nodes.push_back(graph_.producer(result));
    }
    for (std::size_t i = 0; i < results.size() && i < wanted.size(); ++i) {
      Result<std::monostate> checked = check_stated(results[i], wanted[i], op.op.empty() ? op.target : op.op);
      if (checked) continue;
      for (auto it = built->nodes.rbegin(); it != built->nodes.rend(); ++it) graph_.erase(*it);
      contradiction = true;
      return forward(checked);
    }
    name_results(built->nodes, results, wanted, site);
    return results;
  };
  bool contradiction = false;
  Result<Results> first = attempt(contradiction);
  if (!first && !symbols_.empty())
    for (const auto& [name, value] : *bound.env) {
      const ValueId* tensor = std::get_if<ValueId>(&value);
      if (!tensor || !tensor->valid() || !makers_.contains(*tensor)) continue;
      const NodeId maker = graph_.producer(*tensor);
      const AttributesId kept = graph_.attributes(maker);
      const TypeId type = graph_.type(*tensor);
      for (std::size_t choice = 0; symbolise_maker(*tensor, choice); ++choice) {
        bool again_contradicts = false;
        if (Result<Results> again = attempt(again_contradicts)) return std::optional(*again);
        graph_.set_attributes(maker, kept);
        graph_.set_type(*tensor, type);
        report_.substitutions.pop_back();
      }
    }
  if (first) return std::optional(std::move(*first));
  if (contradiction) return forward(first);
  reason_ = first.error().front().message;
  return std::optional<Results>();
}

// Results are called as the dump calls them, what leads to them after the statement.
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
        graph_.rename(v, fresh(graph_.op_of(node).name == "constant" ? "c" : base));
    }
}

// The items of rule files stand before the table's own rows; a declaration is asked last.
const std::vector<Mapping>* Converter::mappings_of(std::string_view target) {
  if (const std::vector<Mapping>* known = table_.find(target)) return known;
  if (auto declared = declared_foreign(context_, target)) {
    declared_.push_back(declared);
    return table_.add(*declared);
  }
  return nullptr;
}

}  // namespace pw::fx
