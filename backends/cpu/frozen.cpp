// Exports FrozenWeights, ConstantParts.
#include "backends/cpu/frozen.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "backends/cpu/packed.hpp"
#include "backends/cpu/run.hpp"
#include "graph/constancy.hpp"

namespace pw::cpu {
namespace {

using Inputs = std::vector<std::size_t>;

Inputs merged(const Inputs& a, const Inputs& b) {
  Inputs out;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

bool has_numbers_alone(const Graph& graph, NodeId node) {
  const Context& context = graph.context();
  for (const auto& [name, value] : context.attributes[graph.attributes(node)])
    if (!has_fixed_sizes(context.dims, value)) return false;
  for (std::size_t r = 0; r < graph.result_count(node); ++r)
    if (!has_fixed_type(graph, graph.result(node, r))) return false;
  return true;
}

/// What a call gave, while its weights are what they were.
struct Kept {
  std::uint64_t stamp = 0;
  std::vector<Array> results;
};

}  // namespace

std::uint64_t FrozenWeights::stamp(const std::vector<std::size_t>& inputs) const {
  std::uint64_t out = 1;
  for (const std::size_t input : inputs) out += changes_[input];
  return out;
}

ConstantParts::ConstantParts(const Graph& graph)
    : graph_(&graph),
      inputs_(graph.value_bound()),
      readers_(graph.value_bound()),
      inside_(graph.value_bound(), true) {
  for (std::size_t i = 0; i < graph.inputs().size(); ++i)
    if (graph.input_kind(graph.inputs()[i]) == InputKind::weight)
      inputs_[graph.inputs()[i].index] = Inputs{i};
  const std::vector<NodeId> order = graph.order();
  for (NodeId node : order) find_inputs(node);
  for (ValueId output : graph.outputs()) inside_[output.index] = false;
  for (auto node = order.rbegin(); node != order.rend(); ++node) find_readers(*node);
}

bool ConstantParts::is_constant(NodeId node) const {
  return graph_->result_count(node) > 0 && inputs_[graph_->result(node, 0).index].has_value();
}

void ConstantParts::find_inputs(NodeId node) {
  const Op& op = graph_->op_of(node);
  const bool known = !op.imported || graph_->op(node) == graph_->context().ops.find(kRowKernel);
  if (!known || op.traits.effect || !has_numbers_alone(*graph_, node)) return;
  Inputs all;
  for (ValueId operand : graph_->operands(node)) {
    if (!operand.valid()) continue;
    if (!inputs_[operand.index]) return;
    all = merged(all, *inputs_[operand.index]);
  }
  for (std::size_t r = 0; r < graph_->result_count(node); ++r)
    inputs_[graph_->result(node, r).index] = all;
}

void ConstantParts::find_readers(NodeId node) {
  const std::vector<ValueId> operands = graph_->operands(node);
  const std::optional<std::size_t> packed = packed_operand(*graph_, node);
  Inputs all;
  for (std::size_t r = 0; r < graph_->result_count(node); ++r) {
    const ValueId result = graph_->result(node, r);
    if (inputs_[result.index])
      all = merged(all, merged(*inputs_[result.index], readers_[result.index]));
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].valid()) continue;
    const std::size_t at = operands[i].index;
    if (is_constant(node)) {
      readers_[at] = merged(readers_[at], all);
    } else if (packed == i && inputs_[at]) {
      readers_[at] = merged(readers_[at], *inputs_[at]);
    } else {
      inside_[at] = false;
    }
  }
}

RunCall ConstantParts::kept(NodeId node, RunCall run, FrozenWeightsPtr weights) const {
  if (!is_constant(node)) return run;
  Inputs all;
  bool inside = true;
  for (std::size_t r = 0; r < graph_->result_count(node); ++r) {
    const ValueId result = graph_->result(node, r);
    all = merged(all, merged(*inputs_[result.index], readers_[result.index]));
    inside = inside && inside_[result.index];
  }
  return [run = std::move(run), weights = std::move(weights), all = std::move(all), inside,
          kept = std::make_shared<Kept>()](Call& call) -> Result<std::monostate> {
    const std::uint64_t stamp = weights->stamp(all);
    if (kept->stamp == stamp) {
      call.results = kept->results;
      return std::monostate{};
    }
    const std::vector<const TensorView*> places = std::exchange(call.places, {});
    auto done = run(call);
    call.places = places;
    if (!done) return done;
    kept->results = call.results;
    for (Array& result : kept->results)
      if (inside) result = {result.dtype, result.extents, result.strides, nullptr, nullptr};
    kept->stamp = stamp;
    return done;
  };
}

}  // namespace pw::cpu
