#include "graph/node_maker.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "graph/build.hpp"

namespace pw {

NodeMaker::NodeMaker(const ContextPtr& context, std::string name)
    : graph(context, std::move(name)), context_(*context) {
  graph.trust_names(true);  // prefixes make them unique
}

ValueId NodeMaker::call(std::string_view op, std::vector<ValueId> operands, Given given,
                        std::vector<std::string> results) {
  const NodeId n = node(op, std::move(operands), std::move(given), std::move(results));
  return n.valid() ? graph.result(n) : graph.inputs().front();
}

std::vector<ValueId> NodeMaker::calls(std::string_view op, std::vector<ValueId> operands,
                                      Given given, std::vector<std::string> results) {
  std::vector<ValueId> values(results.size(), graph.inputs().front());
  const NodeId n = node(op, std::move(operands), std::move(given), std::move(results));
  for (std::size_t i = 0; n.valid() && i < values.size(); ++i) values[i] = graph.result(n, i);
  return values;
}

NodeId NodeMaker::node(std::string_view op, std::vector<ValueId> operands, Given given,
                       std::vector<std::string> results) {
  const Call* inferred = infer(op, operands, given, results.size());
  if (inferred == nullptr) return {};
  NodeSpec spec{inferred->op, std::move(operands), inferred->attributes, {}, "", group, ""};
  for (std::size_t i = 0; i < results.size(); ++i)
    spec.results.push_back({inferred->types[i], prefix + results[i]});
  return graph.add_node(spec);
}

Shape NodeMaker::dims(std::initializer_list<std::int64_t> values) {
  Shape shape;
  for (const std::int64_t value : values) shape.push_back(dim(value));
  return shape;
}

ValueId NodeMaker::weight(const std::string& name, DType dtype,
                          std::initializer_list<std::int64_t> shape) {
  return graph.add_input(prefix + name, type(dtype, dims(shape)), InputKind::weight);
}

Result<Graph> NodeMaker::finish() {
  if (!errors_.empty()) return tl::unexpected(std::move(errors_));
  graph.settle();
  return std::move(graph);
}

/// Infers a call. Returns null after an error, which is kept.
const NodeMaker::Call* NodeMaker::infer(std::string_view name, const std::vector<ValueId>& operands,
                                        const Given& given, std::size_t results) {
  if (!errors_.empty()) return nullptr;
  const OpId op = context_.ops.find(name);
  if (!op.valid())
    return refuse(
        {error_in("graph " + graph.name, "PW0802", "unknown op `" + std::string(name) + "`",
                  "load the op library first")});
  AttributeList list;
  for (const auto& [attribute, value] : given)
    list.emplace_back(context_.strings.intern(attribute), value);
  std::sort(list.begin(), list.end(), [&](const auto& a, const auto& b) {
    return context_.strings.text(a.first) < context_.strings.text(b.first);
  });
  Key key{context_.attributes.intern(list), {op.index}};
  std::vector<TypeId> types;
  for (const ValueId v : operands) {
    types.push_back(v.valid() ? graph.type(v) : TypeId());
    key.second.push_back(types.back().index);
  }
  const auto known = calls_.find(key);
  if (known != calls_.end()) return &known->second;
  auto attributes = complete_attributes(context_, context_.ops[op], std::move(list), types);
  if (!attributes) return refuse(std::move(attributes.error()));
  auto inferred = infer_types(context_, op, types, *attributes, static_cast<int>(results));
  if (!inferred) return refuse(std::move(inferred.error()));
  PW_ASSERT(inferred->size() == results,
            "an op has a different number of results than the generator");
  return &calls_.emplace(std::move(key), Call{op, *attributes, std::move(*inferred)}).first->second;
}

const NodeMaker::Call* NodeMaker::refuse(Diagnostics errors) {
  errors_ = std::move(errors);
  return nullptr;
}

}  // namespace pw
