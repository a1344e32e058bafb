#include "rewriter/egraph/cost.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>

#include "dsl/build/strategy_options.hpp"

namespace pw {
namespace {

constexpr std::int64_t kLargestSize = 8192;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::int64_t saturated_sum(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? kMost : out;
}

std::int64_t saturated_product(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? kMost : out;
}

std::int64_t extent(const Context& context, DimId dim, const SymbolSizes& sizes) {
  if (std::optional<std::int64_t> constant = context.dims.value(dim))
    return std::max<std::int64_t>(*constant, 0);
  SymbolSizes all = sizes;
  for (const std::string& name : context.dims.symbols(dim)) all.emplace(name, kLargestSize);
  return std::max<std::int64_t>(context.dims.evaluate(dim, all).value_or(kMost), 0);
}

/// Byte counter that evaluates each type once.
class ByteCounter {
 public:
  ByteCounter(const Graph& graph, SymbolSizes sizes) : graph_(graph), sizes_(std::move(sizes)) {}

  std::int64_t of(NodeId node) {
    std::int64_t bytes = 0;
    std::set<ValueId> read;
    for (ValueId operand : graph_.operands(node))
      if (operand.valid() && read.insert(operand).second) bytes = saturated_sum(bytes, of(operand));
    for (std::size_t i = 0; i < graph_.result_count(node); ++i)
      bytes = saturated_sum(bytes, of(graph_.result(node, i)));
    return bytes;
  }

 private:
  std::int64_t of(ValueId value) {
    const TypeId type = graph_.type(value);
    auto [at, fresh] = known_.emplace(type.index, 0);
    if (fresh) at->second = bytes_of(graph_.context(), type, sizes_);
    return at->second;
  }

  const Graph& graph_;
  SymbolSizes sizes_;
  std::unordered_map<std::uint32_t, std::int64_t> known_;  // by type; looked up only
};

std::int64_t cost_of_node(const Graph& graph, NodeId node, Cost cost, ByteCounter& bytes) {
  switch (cost) {
    case Cost::nodes: return 1;
    case Cost::ops: return graph.op_of(node).does_work() ? 1 : 0;
    case Cost::bytes: return graph.op_of(node).does_work() ? bytes.of(node) : 0;
  }
  return 0;
}

}  // namespace

std::optional<Cost> cost_named(std::string_view name) {
  for (std::size_t i = 0; i < kCostNames.size(); ++i)
    if (kCostNames[i] == name) return static_cast<Cost>(i);
  return std::nullopt;
}

SymbolSizes representative_sizes(const Facts& facts) {
  SymbolSizes sizes;
  for (const auto& [name, fact] : facts.symbols) {
    const std::int64_t multiple = std::max<std::int64_t>(fact.multiple, 1);
    const std::int64_t most = std::min(fact.max, std::max(fact.min, kLargestSize));
    sizes.emplace(name, std::max(fact.min, most / multiple * multiple));
  }
  return sizes;
}

std::int64_t bytes_of(const Context& context, TypeId id, const SymbolSizes& sizes) {
  if (id == Types::unknown()) return 0;
  const Type& type = context.types[id];
  std::int64_t bytes = size_of(type.dtype);
  for (DimId dim : type.shape) bytes = saturated_product(bytes, extent(context, dim, sizes));
  return bytes;
}

std::int64_t cost_of(const Graph& graph, Cost cost) {
  if (cost == Cost::nodes) return static_cast<std::int64_t>(graph.node_count());
  ByteCounter bytes(graph, representative_sizes(graph.facts));
  std::int64_t total = 0;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n))
    total = saturated_sum(total, cost_of_node(graph, n, cost, bytes));
  return total;
}

std::int64_t cost_of(const Graph& graph, NodeId node, Cost cost, const SymbolSizes& sizes) {
  ByteCounter bytes(graph, sizes);
  return cost_of_node(graph, node, cost, bytes);
}

}  // namespace pw
