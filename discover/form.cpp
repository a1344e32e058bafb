#include "discover/form.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "rewriter/egraph/cost.hpp"

namespace pw::discover {
namespace {

std::vector<TypeId> operand_types(const Step& step, const std::vector<TypeId>& types) {
  std::vector<TypeId> out;
  for (std::size_t operand : step.operands)
    out.push_back(operand == kAbsent ? TypeId() : types[operand]);
  return out;
}

void add_key(std::string& key, const Context& context, const Form& form, std::size_t inputs,
             std::map<std::size_t, std::size_t>& order) {
  const auto name = [&](std::size_t value) {
    if (value == kAbsent) return std::string("-");
    if (value >= inputs) return fmt::format("%{}", value - inputs);
    return fmt::format("x{}", order.emplace(value, order.size()).first->second);
  };
  for (const Step& step : form.steps) {
    key += context.ops[step.op].name + context.attributes.print(step.attributes);
    for (std::size_t operand : step.operands) key += " " + name(operand);
    key += ";";
  }
  for (std::size_t output : form.outputs) key += " " + name(output);
}

}  // namespace

std::optional<std::vector<TypeId>> types_of(Context& context, const Form& form,
                                            const std::vector<TypeId>& inputs) {
  std::vector<TypeId> types = inputs;
  for (const Step& step : form.steps) {
    const auto results = infer_types(context, step.op, operand_types(step, types), step.attributes,
                                     static_cast<int>(step.results));
    if (!results || results->size() != step.results) return std::nullopt;
    types.insert(types.end(), results->begin(), results->end());
  }
  return types;
}

std::optional<std::vector<Tensor>> values_of(Evaluator& evaluator, const Form& form,
                                             const std::vector<TypeId>& types,
                                             std::vector<Tensor> inputs) {
  std::vector<Tensor> values = std::move(inputs);
  values.reserve(types.size());
  for (const Step& step : form.steps) {
    std::vector<const Tensor*> operands;
    for (std::size_t operand : step.operands)
      operands.push_back(operand == kAbsent ? nullptr : &values[operand]);
    const std::span<const TypeId> results(types.data() + values.size(), step.results);
    auto made =
        evaluator.run(step.op, operands, operand_types(step, types), step.attributes, results);
    if (!made || made->size() != step.results) return std::nullopt;
    for (Tensor& tensor : *made) values.push_back(std::move(tensor));
  }
  return values;
}

std::int64_t bytes_of(Context& context, const Form& form, const std::vector<TypeId>& types,
                      const Pair& pair) {
  std::int64_t bytes = 0;
  std::vector<bool> constant;
  for (std::size_t i = 0; i < pair.inputs.size(); ++i) constant.push_back(pair.weight(i));
  for (const Step& step : form.steps) {
    bool fixed = !step.operands.empty();
    std::vector<std::size_t> read;
    for (std::size_t operand : step.operands) {
      if (operand == kAbsent) continue;
      fixed = fixed && constant[operand];
      if (std::find(read.begin(), read.end(), operand) == read.end()) read.push_back(operand);
    }
    const std::size_t first = constant.size();
    if (!fixed && context.ops[step.op].does_work()) {
      for (std::size_t operand : read) bytes += pw::bytes_of(context, types[operand], {});
      for (std::size_t i = 0; i < step.results; ++i)
        bytes += pw::bytes_of(context, types[first + i], {});
    }
    constant.insert(constant.end(), step.results, fixed);
  }
  return bytes;
}

std::optional<std::vector<ValueId>> add_to(Graph& graph, const Form& form,
                                           const std::vector<ValueId>& inputs) {
  std::vector<ValueId> values = inputs;
  for (const Step& step : form.steps) {
    NodeRequest request{};
    request.op = step.op;
    for (std::size_t operand : step.operands)
      request.operands.push_back(operand == kAbsent ? ValueId() : values[operand]);
    request.attributes = graph.context().attributes[step.attributes];
    request.result_names.resize(step.results);
    const Result<NodeId> node = build_node(graph, request);
    if (!node) return std::nullopt;
    for (std::size_t i = 0; i < step.results; ++i) values.push_back(graph.result(*node, i));
  }
  std::vector<ValueId> out;
  for (std::size_t output : form.outputs) out.push_back(values[output]);
  return out;
}

std::string key_of(const Context& context, const Pair& pair) {
  std::string key;
  std::map<std::size_t, std::size_t> order;
  add_key(key, context, pair.before, pair.inputs.size(), order);
  key += " = ";
  add_key(key, context, pair.after, pair.inputs.size(), order);
  return key;
}

Pair without_unused(const Pair& pair) {
  std::map<std::size_t, std::size_t> order;
  const auto note = [&](const Form& form) {
    for (const Step& step : form.steps)
      for (std::size_t operand : step.operands)
        if (operand < pair.inputs.size()) order.emplace(operand, order.size());
    for (std::size_t output : form.outputs)
      if (output < pair.inputs.size()) order.emplace(output, order.size());
  };
  note(pair.before);
  note(pair.after);
  Pair out = pair;
  out.inputs.assign(order.size(), TypeId());
  out.weights.assign(order.size(), false);
  for (const auto& [old, now] : order) {
    out.inputs[now] = pair.inputs[old];
    out.weights[now] = pair.weight(old);
  }
  const auto moved = [&](std::size_t& value) {
    if (value == kAbsent) return;
    value =
        value < pair.inputs.size() ? order.at(value) : value - pair.inputs.size() + order.size();
  };
  for (Form* form : {&out.before, &out.after}) {
    for (Step& step : form->steps)
      for (std::size_t& operand : step.operands) moved(operand);
    for (std::size_t& output : form->outputs) moved(output);
  }
  return out;
}

}  // namespace pw::discover
