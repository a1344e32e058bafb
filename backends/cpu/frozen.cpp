#include "backends/cpu/frozen.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <unistd.h>

#include "backends/cpu/packed.hpp"
#include "backends/cpu/run.hpp"
#include "graph/passes/constancy.hpp"

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

}  // namespace

FrozenWeights::FrozenWeights(const FrozenSlots& slots)
    : slots_(std::make_unique<Slots>(slots.inputs().size())) {}

FrozenWeights::FrozenWeights(const FrozenWeights& before, const FrozenSlots& slots,
                             const std::vector<std::size_t>& changed)
    : FrozenWeights(slots) {
  if (!before.full_) return;
  for (std::size_t i = 0; i < slots_->size(); ++i) {
    const Inputs& inputs = slots.inputs()[i];
    const bool same = std::none_of(changed.begin(), changed.end(), [&](std::size_t input) {
      return std::binary_search(inputs.begin(), inputs.end(), input);
    });
    if (same) (*slots_)[i] = (*before.slots_)[i];
  }
}

FrozenRun::FrozenRun(FrozenWeights& weights) : weights_(weights), use_(begin()) {}

FrozenRun::Use FrozenRun::begin() {
  if (weights_.full_) return Use::reads;
  const ::pid_t self = ::getpid();
  ::pid_t filler = weights_.filler_;
  if (filler == self || !weights_.filler_.compare_exchange_strong(filler, self))
    return Use::nothing;
  if (weights_.full_) {  // filled since the check
    weights_.filler_ = 0;
    return Use::reads;
  }
  // A run of the parent process does not continue after a fork. Its state is unknown, so its slots
  // are not even destroyed.
  if (filler != 0) {
    const std::size_t count = weights_.slots_->size();
    (void)weights_.slots_.release();
    weights_.slots_ = std::make_unique<FrozenWeights::Slots>(count);
  }
  return Use::fills;
}

void FrozenRun::done() {
  if (use_ != Use::fills) return;
  weights_.full_ = true;
  weights_.filler_ = 0;
  use_ = Use::reads;
}

FrozenRun::~FrozenRun() {
  if (use_ != Use::fills) return;
  for (auto& slot : *weights_.slots_) slot = nullptr;
  weights_.filler_ = 0;
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

RunCall ConstantParts::kept(NodeId node, RunCall run, FrozenSlots& slots) const {
  if (!is_constant(node)) return run;
  Inputs all;
  bool inside = true;
  for (std::size_t r = 0; r < graph_->result_count(node); ++r) {
    const ValueId result = graph_->result(node, r);
    all = merged(all, merged(*inputs_[result.index], readers_[result.index]));
    inside = inside && inside_[result.index];
  }
  return [run = std::move(run), slot = slots.add(std::move(all)), inside](Call& call) -> Status {
    FrozenRun* const frozen = call.context.frozen;
    if (frozen == nullptr) return run(call);
    if (const auto* kept = frozen->find<std::vector<Array>>(slot)) {
      call.results = *kept;
      return {};
    }
    if (!frozen->fills()) return run(call);
    const std::vector<const TensorView*> places = std::exchange(call.places, {});
    auto done = run(call);
    call.places = places;
    if (!done) return done;
    std::vector<Array> results = call.results;
    for (Array& result : results)
      if (inside) result = {result.dtype, result.extents, result.strides, nullptr, nullptr};
    frozen->keep(slot, std::move(results));
    return done;
  };
}

}  // namespace pw::cpu
