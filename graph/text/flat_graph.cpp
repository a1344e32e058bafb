#include "graph/text/flat_graph.hpp"

#include "base/hash.hpp"

namespace pw {

FlatGraph::FlatGraph(const Graph& graph) : graph_(graph), nodes_(graph.order()) {
  number();
  link();
}

void FlatGraph::number() {
  const std::vector<ValueId>& inputs = graph_.inputs();
  inputs_ = static_cast<std::uint32_t>(inputs.size());
  item_of_input_.assign(graph_.value_bound(), kNoItem);
  item_of_node_.assign(graph_.node_bound(), kNoItem);
  names_.reserve(inputs.size() + nodes_.size());
  for (std::uint32_t i = 0; i < inputs_; ++i) {
    item_of_input_[inputs[i].index] = i;
    names_.push_back(graph_.value_name(inputs[i]));
  }
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    item_of_node_[nodes_[i].index] = inputs_ + i;
    names_.push_back(graph_.node_name(nodes_[i]));
  }
}

void FlatGraph::link() {
  first_operand_.assign(size() + 1, 0);
  first_use_.assign(size() + 1, 0);
  for (std::uint32_t item = 0; item < size(); ++item) {
    if (!is_input(item))
      for (std::size_t k = 0; k < graph_.operand_count(node(item)); ++k)
        operands_.push_back(of(graph_.operand(node(item), k)));
    first_operand_[item + 1] = static_cast<std::uint32_t>(operands_.size());
  }
  std::vector<ItemResult> outputs;
  for (const ValueId v : graph_.outputs()) outputs.push_back(of(v));
  for (const auto& list : {operands_, outputs})
    for (const ItemResult& read : list)
      if (read.item != kNoItem) ++first_use_[read.item + 1];
  for (std::uint32_t item = 0; item < size(); ++item) first_use_[item + 1] += first_use_[item];
  uses_.resize(first_use_.back());
  std::vector<std::uint32_t> next(first_use_.begin(), first_use_.end() - 1);
  for (std::uint32_t item = 0; item < size(); ++item)
    for (std::uint32_t k = 0; k < operands(item).size(); ++k)
      if (const ItemResult read = operands(item)[k]; read.item != kNoItem)
        uses_[next[read.item]++] = {item, k, read.result};
  for (std::uint32_t k = 0; k < outputs.size(); ++k)
    uses_[next[outputs[k].item]++] = {kNoItem, k, outputs[k].result};
}

ItemResult FlatGraph::of(ValueId value) const {
  if (!value.valid()) return {};
  if (graph_.is_input(value)) return {item_of_input_[value.index], 0};
  return {item_of_node_[graph_.producer(value).index],
          static_cast<std::uint32_t>(graph_.result_index(value))};
}

std::uint64_t FlatGraph::label(std::uint32_t item) const {
  if (is_input(item)) {
    const ValueId v = input(item);
    std::uint64_t h =
        combine(graph_.type(v).index, static_cast<std::uint64_t>(graph_.input_kind(v)));
    for (const std::string& group : graph_.replicated_over(v)) h = combine(h, hash_text(group));
    return h;
  }
  const NodeId n = node(item);
  std::uint64_t h = combine(weak_label(item), graph_.attributes(n).index);
  h = combine(h, operands(item).size());
  for (const ItemResult& operand : operands(item)) h = combine(h, operand.item != kNoItem);
  for (std::size_t r = 0; r < graph_.result_count(n); ++r)
    h = combine(h, graph_.type(graph_.result(n, r)).index);
  return h;
}

std::uint64_t FlatGraph::weak_label(std::uint32_t item) const {
  if (is_input(item)) return mix(1);
  return combine(2, graph_.op(node(item)).index);
}

}  // namespace pw
