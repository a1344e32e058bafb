#include "discover/evaluate.hpp"

#include <algorithm>
#include <functional>

#include "discover/primitives.hpp"

namespace pw::discover {
namespace {

/// An op without a body only guarantees equal results for equal operands.
std::vector<Tensor> unknown_results(const Context& context, const Op& op,
                                    std::span<const Tensor* const> operands,
                                    AttributesId attributes, std::span<const TypeId> results) {
  std::uint64_t hash = hash_text(op.name + context.attributes.print(attributes));
  for (const Tensor* operand : operands) hash = combine(hash, operand ? operand->hash() : 1);
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < results.size(); ++i)
    out.push_back(random_tensor(context, results[i], hash, i));
  return out;
}

}  // namespace

std::uint64_t Tensor::hash() const {
  std::uint64_t hash = mix(shape.size());
  for (std::int64_t extent : shape) hash = combine(hash, static_cast<std::uint64_t>(extent));
  for (Residue element : elements) hash = (hash ^ element) * 0x9e3779b97f4a7c15ull + (hash >> 29);
  return mix(hash);
}

std::optional<std::vector<std::int64_t>> extents(const Context& context, TypeId type) {
  if (type == Types::unknown()) return std::nullopt;
  std::vector<std::int64_t> out;
  for (DimId dim : context.types[type].shape) {
    const std::optional<std::int64_t> extent = context.dims.value(dim);
    if (!extent) return std::nullopt;
    out.push_back(*extent);
  }
  return out;
}

Tensor random_tensor(const Context& context, TypeId type, std::uint64_t seed, std::size_t input) {
  Tensor out{extents(context, type).value_or(std::vector<std::int64_t>{}), {}};
  std::int64_t count = 1;
  for (std::int64_t extent : out.shape) count *= extent;
  Random random(combine(seed, input));
  for (std::int64_t i = 0; i < count; ++i) out.elements.push_back(reduced(random.next()));
  return out;
}

const Meaning* Evaluator::meaning(OpId op, std::span<const TypeId> types, AttributesId attributes) {
  const auto [at, fresh] = meanings_.try_emplace(Key{op, {types.begin(), types.end()}, attributes});
  if (fresh) {
    Result<Meaning> made = instantiate_body(*context_, op, types, attributes, {});
    if (made && inline_bodies(made->graph)) at->second = std::move(*made);
  }
  return at->second ? &*at->second : nullptr;
}

std::optional<std::vector<Tensor>> Evaluator::unfolded(const Meaning& meaning,
                                                       std::span<const Tensor* const> operands) {
  const Graph& graph = meaning.graph;
  std::map<ValueId, Tensor> made;
  std::map<ValueId, const Tensor*> known;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i)
    known[graph.inputs()[i]] = operands[static_cast<std::size_t>(meaning.operand_of_input[i])];
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
    std::vector<const Tensor*> in;
    std::vector<TypeId> types, results;
    for (ValueId v : graph.operands(n)) {
      in.push_back(v.valid() ? known.at(v) : nullptr);
      types.push_back(v.valid() ? graph.type(v) : TypeId());
    }
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      results.push_back(graph.type(graph.result(n, i)));
    auto out = run(graph.op(n), in, types, graph.attributes(n), results);
    if (!out) return std::nullopt;
    for (std::size_t i = 0; i < out->size(); ++i) {
      const ValueId value = graph.result(n, i);
      known[value] = &(made[value] = std::move((*out)[i]));
    }
  }
  std::vector<Tensor> out;
  for (ValueId v : graph.outputs()) out.push_back(*known.at(v));
  return out;
}

std::optional<std::vector<Tensor>> Evaluator::run(OpId id, std::span<const Tensor* const> operands,
                                                  std::span<const TypeId> types,
                                                  AttributesId attributes,
                                                  std::span<const TypeId> results) {
  const Op& op = context_->ops[id];
  for (TypeId type : results)
    if (!extents(*context_, type)) return std::nullopt;
  if (const Definition definition = definition_of(op.primitive)) {
    auto out = definition({*context_, operands, types, attributes, results});
    if (out) return out;
  }
  if (op.has_body()) {
    const Meaning* meant = meaning(id, types, attributes);
    return meant ? unfolded(*meant, operands) : std::nullopt;
  }
  return unknown_results(*context_, op, operands, attributes, results);
}

}  // namespace pw::discover
