// Exports Graph: building, reading, mutation. Order and undo are in graph_order.cpp and
// graph_undo.cpp.
#include "graph/graph.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace pw {

std::string_view name(InputKind kind) {
  switch (kind) {
    case InputKind::input: return "input";
    case InputKind::weight: return "weight";
    case InputKind::buffer: return "buffer";
  }
  return "?";
}

Graph::Graph(ContextPtr context, std::string graph_name)
    : name(std::move(graph_name)), context_(std::move(context)) {}

NameId Graph::claim(std::string_view wanted) {
  NameId id = context_->strings.intern(wanted.empty() ? fresh_name("v") : std::string(wanted));
  if (!names_.insert(id.index).second) {
    id = context_->strings.intern(fresh_name(wanted));
    names_.insert(id.index);
  }
  return id;
}

std::string Graph::fresh_name(std::string_view base) {
  NameId id = context_->strings.find(base);
  if (!id.valid() || !names_.contains(id.index)) return std::string(base);
  // A counter per base keeps a million fresh names linear.
  std::uint32_t& counter = name_counters_[id.index];
  while (true) {
    std::string candidate = std::string(base) + "_" + std::to_string(++counter);
    NameId known = context_->strings.find(candidate);
    if (!known.valid() || !names_.contains(known.index)) return candidate;
  }
}

ValueId Graph::add_input(std::string_view input_name, TypeId type, InputKind kind) {
  Value v;
  v.type = type;
  v.kind = kind;
  v.name = claim(input_name);
  ValueId id = values_.push_back(v);
  inputs_.push_back(id);
  return id;
}

void Graph::declare_replicated(ValueId input, std::string_view over) {
  ++edition_;
  std::vector<std::string>& groups = replicated_[input];
  const auto at = std::lower_bound(groups.begin(), groups.end(), over);
  if (at == groups.end() || *at != over) groups.emplace(at, over);
}

const std::vector<std::string>& Graph::replicated_over(ValueId input) const {
  static const std::vector<std::string> none;
  const auto it = replicated_.find(input);
  return it == replicated_.end() ? none : it->second;
}

NodeId Graph::add_node(const NodeSpec& spec) {
  Node n;
  n.op = spec.op;
  n.attributes = spec.attributes;
  n.first_operand = static_cast<std::uint32_t>(uses_.size());
  n.operand_count = static_cast<std::uint32_t>(spec.operands.size());
  n.first_result = static_cast<std::uint32_t>(values_.size());
  n.result_count = static_cast<std::uint32_t>(spec.results.size());
  if (!spec.group.empty()) n.group = context_->strings.intern(spec.group);
  if (!spec.source.empty()) n.source = context_->strings.intern(spec.source);
  NodeId id = nodes_.push_back(n);
  for (const ResultSpec& result : spec.results) {
    Value v;
    v.producer = id;
    v.type = result.type;
    v.name = claim(result.name);
    values_.push_back(v);
  }
  if (!spec.name.empty() || spec.results.empty())
    nodes_[id].name = context_->strings.intern(spec.name.empty() ? fresh_name("node") : spec.name);
  else
    nodes_[id].name = values_[ValueId(n.first_result)].name;
  for (ValueId operand : spec.operands) {
    Use u;
    u.user = id;
    UseId use = uses_.push_back(u);
    link_use(use, operand);
  }
  link_node(id, insertion_);
  record(Undo::Kind::added, id.index, 0, 0);
  return id;
}

void Graph::add_output(ValueId value) {
  outputs_.push_back(value);
  ++values_[value].output_count;
}

std::vector<NodeId> Graph::order() const {
  std::vector<NodeId> out;
  out.reserve(live_);
  for (NodeId n = head_; n.valid(); n = nodes_[n].next) out.push_back(n);
  return out;
}

const Attribute* Graph::attribute(NodeId n, std::string_view attribute_name) const {
  return context_->attributes.find(nodes_[n].attributes, attribute_name);
}

std::vector<ValueId> Graph::operands(NodeId n) const {
  std::vector<ValueId> out;
  for (std::size_t i = 0; i < operand_count(n); ++i) out.push_back(operand(n, i));
  return out;
}

ValueId Graph::find_value(std::string_view value_name_wanted) const {
  NameId id = context_->strings.find(value_name_wanted);
  if (!id.valid()) return {};
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Value& v = values_[ValueId(i)];
    if (v.name == id && (!v.producer.valid() || nodes_[v.producer].alive)) return ValueId(i);
  }
  return {};
}

std::vector<NodeId> Graph::users(ValueId v) const {
  std::vector<NodeId> out;
  for (UseId u = first_use(v); u.valid(); u = next_use(u)) out.push_back(user(u));
  std::sort(out.begin(), out.end(), [&](NodeId a, NodeId b) { return label(a) < label(b); });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void Graph::link_use(UseId u, ValueId v) {
  Use& use = uses_[u];
  use.value = v;
  use.previous = {};
  use.next = {};
  if (!v.valid()) return;
  Value& value = values_[v];
  use.next = value.first_use;
  if (use.next.valid()) uses_[use.next].previous = u;
  value.first_use = u;
  ++value.use_count;
}

void Graph::unlink_use(UseId u) {
  Use& use = uses_[u];
  if (!use.value.valid()) return;
  Value& value = values_[use.value];
  if (use.previous.valid())
    uses_[use.previous].next = use.next;
  else
    value.first_use = use.next;
  if (use.next.valid()) uses_[use.next].previous = use.previous;
  --value.use_count;
}

void Graph::set_operand(NodeId n, std::size_t i, ValueId v) {
  UseId u(nodes_[n].first_operand + i);
  record(Undo::Kind::operand, n.index, static_cast<std::uint32_t>(i), uses_[u].value.index);
  unlink_use(u);
  link_use(u, v);
}

void Graph::set_attributes(NodeId n, AttributesId attributes) {
  record(Undo::Kind::attributes, n.index, 0, nodes_[n].attributes.index);
  nodes_[n].attributes = attributes;
}

void Graph::set_type(ValueId v, TypeId type) {
  record(Undo::Kind::type, v.index, 0, values_[v].type.index);
  values_[v].type = type;
}

void Graph::set_op(NodeId n, OpId op) {
  record(Undo::Kind::op, n.index, 0, nodes_[n].op.index);
  nodes_[n].op = op;
}

void Graph::set_output(std::size_t i, ValueId v) {
  record(Undo::Kind::output, static_cast<std::uint32_t>(i), 0, outputs_[i].index);
  --values_[outputs_[i]].output_count;
  outputs_[i] = v;
  ++values_[v].output_count;
}

void Graph::set_group(NodeId n, std::string_view group_name) {
  record(Undo::Kind::group, n.index, 0, nodes_[n].group.index);
  nodes_[n].group = group_name.empty() ? NameId() : context_->strings.intern(group_name);
}

void Graph::rename(ValueId v, std::string_view new_name) {
  NameId old = values_[v].name;
  record(Undo::Kind::rename, v.index, 0, old.index);
  names_.erase(old.index);
  values_[v].name = claim(new_name);
  NodeId n = producer(v);
  if (n.valid() && nodes_[n].name == old) nodes_[n].name = values_[v].name;
}

void Graph::replace_uses(ValueId from, ValueId to) {
  if (from == to) return;
  while (values_[from].first_use.valid()) {
    UseId u = values_[from].first_use;
    set_operand(user(u), use_operand(u), to);
  }
  if (values_[from].output_count == 0) return;
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i] == from) set_output(i, to);
}

void Graph::erase(NodeId n) {
  for (std::size_t i = 0; i < result_count(n); ++i)
    PW_ASSERT(unused(result(n, i)),
              "erase: `" + std::string(value_name(result(n, i))) + "` is still used");
  NodeId next = nodes_[n].next;
  detach(n);
  record(Undo::Kind::erased, n.index, 0, next.index);
}

std::size_t Graph::erase_dead() {
  std::size_t erased = 0;
  for (NodeId n = tail_; n.valid();) {
    NodeId before = nodes_[n].previous;
    bool dead = !op_of(n).traits.effect;
    for (std::size_t i = 0; dead && i < result_count(n); ++i) dead = unused(result(n, i));
    if (dead) {
      erase(n);
      ++erased;
    }
    n = before;
  }
  return erased;
}

std::size_t Graph::bytes() const {
  return nodes_.size() * sizeof(Node) + values_.size() * sizeof(Value) +
         uses_.size() * sizeof(Use) + undo_.size() * sizeof(Undo) +
         (inputs_.size() + outputs_.size()) * sizeof(ValueId) + names_.size() * 16;
}

Graph Graph::compact() const {
  Graph out(context_, name);
  out.facts = facts;
  std::vector<ValueId> map(values_.size());
  for (ValueId v : inputs_) {
    map[v.index] = out.add_input(value_name(v), type(v), input_kind(v));
    for (const std::string& over : replicated_over(v)) out.declare_replicated(map[v.index], over);
  }
  for (NodeId n = head_; n.valid(); n = next(n)) {
    NodeSpec spec;
    spec.op = op(n);
    spec.attributes = attributes(n);
    spec.name = node_name(n);
    spec.group = group(n);
    spec.source = source(n);
    for (ValueId v : operands(n)) spec.operands.push_back(v.valid() ? map[v.index] : ValueId());
    for (std::size_t i = 0; i < result_count(n); ++i)
      spec.results.push_back({type(result(n, i)), std::string(value_name(result(n, i)))});
    NodeId copy = out.add_node(spec);
    for (std::size_t i = 0; i < result_count(n); ++i) map[result(n, i).index] = out.result(copy, i);
  }
  for (ValueId v : outputs_) out.add_output(map[v.index]);
  return out;
}

}  // namespace pw
