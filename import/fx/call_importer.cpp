#include "import/fx/call_importer.hpp"

#include "base/try.hpp"

namespace pw::fx {
namespace {

constexpr std::string_view kUnseen = "unseen";

}  // namespace

Status CallImporter::begin() {
  parts_.unknown.set_functional(true);
  parts_.unknown.set_pure(true);
  return parts_.inputs.read();
}

const Value* CallImporter::input(std::string_view name) const { return parts_.env.find(name); }

Value CallImporter::add_weight(const std::string& name, TypeId type) {
  const std::string free = parts_.graph.fresh_name(name);
  parts_.names.insert(free);
  return parts_.versions.input_tensor(parts_.graph.add_input(free, type, InputKind::weight));
}

OrReason<Value> CallImporter::try_call(std::string_view target, const Arguments& arguments,
                                       const std::string& name) {
  const Site site{
      parts_.function.span, "", true, {parts_.emitter.fresh(name), Types::unknown(), {}}, {}};
  const std::size_t first_new = parts_.graph.node_bound();
  std::string why;
  Result<std::optional<Outcome>> known = parts_.known.make(target, arguments, site, false, why);
  if (known && *known) return parts_.calls.as_result(**known, arguments, first_new, target);
  parts_.known.erase_unused(first_new);
  if (!known) why = known.error().front().message;
  return tl::unexpected<std::string>(why.empty() ? std::string(target) + " is not known" : why);
}

OrReason<std::vector<Value>> CallImporter::try_op(std::string_view op,
                                                  const std::vector<Value>& operands,
                                                  const NamedAttributes& attributes,
                                                  const std::string& name) {
  const Site site{
      parts_.function.span, "", true, {parts_.emitter.fresh(name), Types::unknown(), {}}, {}};
  std::vector<ValueId> values;
  for (const Value& operand : operands) {
    const std::optional<ValueId> value = parts_.emitter.as_operand(operand, site);
    if (!value) return tl::unexpected<std::string>("an operand is not a tensor");
    values.push_back(*value);
  }
  Result<Results> results = parts_.emitter.emit(op, values, attributes, {site.result}, site);
  if (!results) return tl::unexpected<std::string>(results.error().front().message);
  std::vector<Value> out;
  for (const ValueId result : *results) out.push_back(parts_.versions.tensor(result));
  return out;
}

Result<Value> CallImporter::add_call(std::string_view target, const Arguments& arguments,
                                     std::string name, std::map<int, Wanted> items) {
  const Site site{
      parts_.function.span, "", true, {std::move(name), Types::unknown(), {}}, std::move(items)};
  Result<Value> out = parts_.calls.call(target, arguments, site);
  if (out && out->kind == Value::Kind::tensor &&
      parts_.graph.value_name(out->tensor) != site.result.name)
    parts_.env[site.result.name] = *out;  // for the report's aliases
  return out;
}

Result<Value> CallImporter::add_unseen(const std::string& name, const std::vector<Value>& reads,
                                       const std::string& type) {
  NodeRequest request;
  request.op = context_->ops.find(kUnseen);
  if (!request.op.valid()) {
    Op declared;
    declared.name = std::string(kUnseen);
    declared.imported = true;
    OpId op = PW_TRY(context_->ops.declare(declared));
    request.op = op;
  }
  request.span = parts_.function.span;
  request.result_names = {name};
  if (!type.empty()) {
    TypeId stated = PW_TRY(parts_.types.read(type, parts_.function.span));
    request.stated = {stated};
  }
  for (const Value& read : reads) {
    if (read.kind == Value::Kind::tensor) request.operands.push_back(read.tensor);
    for (const Value& item : read.items) request.operands.push_back(item.tensor);
  }
  NodeId node = PW_TRY(build_node(parts_.graph, request));
  return parts_.versions.tensor(parts_.graph.result(node));
}

Status CallImporter::state_type(const Value& value, const std::string& type) {
  TypeId stated = PW_TRY(parts_.types.read(type, parts_.function.span));
  parts_.graph.set_type(value.tensor, stated);
  return {};
}

Result<Value> CallImporter::keep_call(std::string_view target, const Arguments& arguments,
                                      const Outputs& results, bool random, const std::string& why) {
  Site site{parts_.function.span,
            "",
            true,
            {results.empty() ? "" : results.front().name, Types::unknown(), {}},
            {}};
  for (std::size_t i = 0; i < results.size(); ++i)
    site.items.emplace(static_cast<int>(i), results[i]);
  parts_.unknown.set_pure(!random);
  Result<Value> out = parts_.unknown.keep(target, arguments, site, {true, {}, why});
  parts_.unknown.set_pure(true);
  return out;
}

void CallImporter::name(const Value& value, const std::string& name) {
  if (value.kind != Value::Kind::tensor || parts_.graph.is_input(value.tensor)) return;
  const std::string now(parts_.graph.value_name(value.tensor));
  if (!parts_.names.generated(now) || parts_.graph.fresh_name(name) != name) return;
  parts_.graph.rename(value.tensor, name);
  parts_.names.insert(name);
}

Result<FxImport> CallImporter::finish(const std::vector<std::pair<std::string, Value>>& outputs) {
  for (const auto& [name, value] : outputs) {
    this->name(value, name);
    ValueId output = value.tensor;
    if (parts_.graph.value_name(output) != name &&
        parts_.graph.fresh_name(name) == name) {  // one value, two names
      const Site site{parts_.function.span, "", true, {}, {}};
      Result<Results> alias =
          parts_.emitter.emit("detach", {output}, {}, {{name, Types::unknown(), {}}}, site);
      if (!alias) return forward(alias);
      output = alias->front();
    }
    parts_.graph.add_output(output);
  }
  return fx::finish(parts_, context_);
}

}  // namespace pw::fx
