#include "graph/graph.hpp"

namespace pw {

Graph Graph::compact() const {
  Graph out(context_, name);
  out.facts = facts;
  out.contents = contents;
  out.provenances_ = provenances_;
  out.provenances_.settle();
  out.inputs_.reserve(inputs_.size());
  out.outputs_.reserve(outputs_.size());
  std::size_t values = inputs_.size(), uses = 0;
  for (NodeId n = first(); n.valid(); n = next(n)) {
    values += result_count(n);
    uses += operand_count(n);
  }
  out.nodes_.reserve(node_count() + 1);
  out.order_.reserve(node_count());
  out.values_.reserve(values);
  out.uses_.reserve(uses);

  std::vector<ValueId> map(values_.size());
  const auto copy = [&](ValueId v, NodeId producer) {
    map[v.index] = out.push_value(
        producer, type(v), named(v) ? values_[v].name : context_->value_names.add(unnamed(v)));
  };
  for (ValueId v : inputs_) {
    copy(v, {});
    out.set_input_kind(map[v.index], input_kind(v));
    out.inputs_.push_back(map[v.index]);
    for (const std::string& over : replicated_over(v)) out.declare_replicated(map[v.index], over);
  }
  std::vector<ValueId> read;
  for (NodeId n = first(); n.valid(); n = next(n)) {
    const NodeId made =
        out.push_node(op(n), attributes(n), result_count(n), nodes_[n].marks & kProvenance);
    for (std::size_t i = 0; i < result_count(n); ++i) copy(result(n, i), made);
    read.clear();
    for (std::size_t i = 0; i < operand_count(n); ++i)
      read.push_back(operand(n, i).valid() ? map[operand(n, i).index] : ValueId());
    out.push_operands(made, read);
    if (const auto own = node_names_.find(n.index); own != node_names_.end())
      out.node_names_.emplace(made.index, own->second);
    out.link_node(made, {});
  }
  for (ValueId v : outputs_) out.push_output(map[v.index]);
  for (ValueId v : written_inputs_) out.written_inputs_.push_back(map[v.index]);
  for (const Value& v : out.values_) {  // names of the form that unnamed values have
    if (v.name.valid()) out.reserve(context_->value_names.copy(v.name));
  }
  return out;
}

}  // namespace pw
