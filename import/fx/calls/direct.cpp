#include "base/try.hpp"
#include "import/fx/convert.hpp"

namespace pw::fx {
namespace {

constexpr std::string_view kUnseen = "unseen";

}  // namespace

Status Converter::begin() {
  functional_ = pure_ = true;
  return read_inputs();
}

const Value* Converter::input(std::string_view name) const { return env_.find(name); }

Value Converter::add_weight(const std::string& name, TypeId type) {
  const std::string free = graph_.fresh_name(name);
  names_.insert(free);
  return versions_.input_tensor(graph_.add_input(free, type, InputKind::weight));
}

OrReason<Value> Converter::try_call(std::string_view target, const Arguments& arguments,
                                    const std::string& name) {
  const Site site{function_.span, "", true, {names_.fresh(name), Types::unknown(), {}}, {}};
  const std::size_t first_new = graph_.node_bound();
  std::string why;
  Result<std::optional<Outcome>> known = known_call(target, arguments, site, false, why);
  if (known && *known) return as_result(**known, arguments, first_new, target);
  erase_unused(first_new);
  if (!known) why = known.error().front().message;
  return tl::unexpected<std::string>(why.empty() ? std::string(target) + " is not known" : why);
}

OrReason<std::vector<Value>> Converter::try_op(std::string_view op,
                                               const std::vector<Value>& operands,
                                               const NamedAttributes& attributes,
                                               const std::string& name) {
  const Site site{function_.span, "", true, {names_.fresh(name), Types::unknown(), {}}, {}};
  std::vector<ValueId> values;
  for (const Value& operand : operands) {
    const std::optional<ValueId> value = emitter_.as_operand(operand, site);
    if (!value) return tl::unexpected<std::string>("an operand is not a tensor");
    values.push_back(*value);
  }
  Result<Results> results = emitter_.emit(op, values, attributes, {site.result}, site);
  if (!results) return tl::unexpected<std::string>(results.error().front().message);
  std::vector<Value> out;
  for (const ValueId result : *results) out.push_back(versions_.tensor(result));
  return out;
}

Result<Value> Converter::add_call(std::string_view target, const Arguments& arguments,
                                  std::string name, std::map<int, Wanted> items) {
  const Site site{
      function_.span, "", true, {std::move(name), Types::unknown(), {}}, std::move(items)};
  Result<Value> out = call(target, arguments, site);
  if (out && out->kind == Value::Kind::tensor && graph_.value_name(out->tensor) != site.result.name)
    env_[site.result.name] = *out;  // for the report's aliases
  return out;
}

Result<Value> Converter::add_unseen(const std::string& name, const std::vector<Value>& reads,
                                    const std::string& type) {
  NodeRequest request;
  request.op = context_.ops.find(kUnseen);
  if (!request.op.valid()) {
    Op declared;
    declared.name = std::string(kUnseen);
    declared.imported = true;
    OpId op = PW_TRY(context_.ops.declare(declared));
    request.op = op;
  }
  request.span = function_.span;
  request.result_names = {name};
  if (!type.empty()) {
    TypeId stated = PW_TRY(stated_type(type, function_.span));
    request.stated = {stated};
  }
  for (const Value& read : reads) {
    if (read.kind == Value::Kind::tensor) request.operands.push_back(read.tensor);
    for (const Value& item : read.items) request.operands.push_back(item.tensor);
  }
  NodeId node = PW_TRY(build_node(graph_, request));
  return versions_.tensor(graph_.result(node));
}

Status Converter::state_type(const Value& value, const std::string& type) {
  TypeId stated = PW_TRY(stated_type(type, function_.span));
  graph_.set_type(value.tensor, stated);
  return {};
}

Result<Value> Converter::keep_call(std::string_view target, const Arguments& arguments,
                                   const std::vector<Wanted>& results, bool random,
                                   const std::string& why) {
  Site site{function_.span,
            "",
            true,
            {results.empty() ? "" : results.front().name, Types::unknown(), {}},
            {}};
  for (std::size_t i = 0; i < results.size(); ++i)
    site.items.emplace(static_cast<int>(i), results[i]);
  pure_ = !random;
  Result<Value> out = opaque(target, arguments, site, {true, {}, why});
  pure_ = true;
  return out;
}

void Converter::name(const Value& value, const std::string& name) {
  if (value.kind != Value::Kind::tensor || graph_.is_input(value.tensor)) return;
  const std::string now(graph_.value_name(value.tensor));
  if (!names_.generated(now) || graph_.fresh_name(name) != name) return;
  graph_.rename(value.tensor, name);
  names_.insert(name);
}

Result<FxImport> Converter::finish(const std::vector<std::pair<std::string, Value>>& outputs) {
  for (const auto& [name, value] : outputs) {
    this->name(value, name);
    ValueId output = value.tensor;
    if (graph_.value_name(output) != name &&
        graph_.fresh_name(name) == name) {  // one value, two names
      const Site site{function_.span, "", true, {}, {}};
      Result<Results> alias =
          emitter_.emit("detach", {output}, {}, {{name, Types::unknown(), {}}}, site);
      if (!alias) return forward(alias);
      output = alias->front();
    }
    graph_.add_output(output);
  }
  return finished();
}

}  // namespace pw::fx
