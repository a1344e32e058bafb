// Names, order, undo, and copies are in graph_*.cpp.
#include "graph/graph.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "graph/storage/room.hpp"

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
    : name(std::move(graph_name)), context_(std::move(context)) {
  nodes_.push_back({});
}

Graph::Graph(const Graph&) = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(const Graph&) = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

// ---- building

ValueId Graph::add_input(std::string_view input_name, TypeId type, InputKind kind) {
  return push_input(claim(input_name), type, kind);
}

ValueId Graph::push_input(ValueNameId given, TypeId type, InputKind kind) {
  const ValueId id = push_value({}, type, given);
  set_input_kind(id, kind);
  inputs_.push_back(id);
  return id;
}

void Graph::set_input_kind(ValueId v, InputKind kind) {
  std::uint32_t& marks = values_[v].marks;
  marks = (marks & ~(3u << kKindShift)) | (static_cast<std::uint32_t>(kind) << kKindShift);
}

void Graph::declare_replicated(ValueId input, std::string_view over) {
  ++edition_;
  std::vector<std::string> groups = replicated_over(input);
  const auto at = std::lower_bound(groups.begin(), groups.end(), over);
  if (at == groups.end() || *at != over) groups.emplace(at, over);
  auto known = std::find(replicated_.begin(), replicated_.end(), groups);
  if (known == replicated_.end() && replicated_.size() < kManySets)
    known = replicated_.insert(known, groups);
  const bool many = known == replicated_.end();
  if (many) more_replicated_[input] = std::move(groups);
  const auto set = static_cast<std::uint32_t>(known - replicated_.begin());
  values_[input].producer.index = NodeId::kNone - (many ? kManySets : set);
}

const std::vector<std::string>& Graph::replicated_over(ValueId input) const {
  if (!is_input(input)) return replicated_.front();
  const std::uint32_t set = NodeId::kNone - values_[input].producer.index;
  return set < kManySets ? replicated_[set] : more_replicated_.at(input);
}

NodeId Graph::push_node(OpId op, AttributesId attributes, std::size_t results,
                        std::uint32_t provenance) {
  const NodeId id(node_bound());
  PW_ASSERT(id.index < (kWideUse >> kSlotBits), "more nodes than a graph can hold");
  Node& n = nodes_.back();
  n.op = op;
  n.attributes = attributes;
  n.first_result = static_cast<std::uint32_t>(values_.size());
  n.marks = provenance;
  if (results < kMany) {
    n.marks |= static_cast<std::uint32_t>(results) << kCountShift;
  } else {
    n.marks |= kMany << kCountShift;
    many_results_.emplace(id.index, static_cast<std::uint32_t>(results));
  }
  nodes_.push_back({});
  order_.add();
  return id;
}

void Graph::push_operands(NodeId n, std::span<const ValueId> operands) {
  PW_ASSERT(uses_.size() + operands.size() < ValueId::kNone, "more operands than a graph can hold");
  if (operands.size() > kSlots) {
    first_wide_.emplace(n.index, static_cast<std::uint32_t>(wide_uses_.size()));
    for (std::size_t i = kSlots; i < operands.size(); ++i)
      wide_uses_.push_back({n, static_cast<std::uint32_t>(i)});
    PW_ASSERT(wide_uses_.size() < kWideUse, "more operands than a graph can hold");
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    uses_.push_back({});
    link_use(use_of(n, i), operands[i]);
  }
  nodes_.back().first_operand = static_cast<std::uint32_t>(uses_.size());
}

NodeId Graph::add_node(OpId op, std::span<const ValueId> operands, AttributesId attributes,
                       std::span<const TypeId> results, NodeId like) {
  return add_node(op, operands, attributes, results, {},
                  like.valid() ? nodes_[like].marks & kProvenance : 0);
}

void Graph::expect(std::size_t nodes, std::size_t values, std::size_t operands) {
  const auto grow = [](auto& array, std::size_t more) {
    array.reserve(with_room(array.size() + more));
  };
  grow(nodes_, nodes);
  order_.expect(nodes);
  grow(values_, values);
  grow(uses_, operands);
}

ValueId Graph::add_input(ValueNameId given, TypeId type, InputKind kind) {
  reserve_given(given);
  return push_input(given, type, kind);
}

NodeId Graph::add_node(OpId op, std::span<const ValueId> operands, AttributesId attributes,
                       std::span<const TypeId> results, std::span<const ValueNameId> names,
                       std::uint32_t place) {
  const NodeId id = push_node(op, attributes, results.size(), place);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ValueNameId given = names.empty() ? ValueNameId() : names[i];
    if (given.valid()) reserve_given(given);
    push_value(id, results[i], given);
  }
  push_operands(id, operands);
  link_node(id, insertion_);
  record(Undo::Kind::added, id.index, 0);
  return id;
}

void Graph::give_name(NodeId n, std::string_view own) {
  node_names_[n.index] = context_->value_names.add(own);
}

NodeId Graph::add_node(const NodeSpec& spec) {
  const NodeId id = push_node(spec.op, spec.attributes, spec.results.size(),
                              provenance(text_id(spec.group), text_id(spec.source)));
  for (const ResultSpec& result : spec.results) push_value(id, result.type, claim(result.name));
  const ValueNameId first = spec.results.empty() ? ValueNameId() : values_[result(id)].name;
  const bool own_name =
      !spec.name.empty() && (!first.valid() || !context_->value_names.is(first, spec.name));
  if (own_name || spec.results.empty())
    node_names_.emplace(id.index,
                        context_->value_names.add(own_name ? spec.name : fresh_name("node")));
  push_operands(id, spec.operands);
  link_node(id, insertion_);
  record(Undo::Kind::added, id.index, 0);
  return id;
}

ValueId Graph::push_value(NodeId producer, TypeId type, ValueNameId value_name) {
  Value value;
  value.producer = producer;
  value.name = value_name;
  const ValueId id = values_.push_back(value);
  put_type(id, type);
  return id;
}

void Graph::put_type(ValueId v, TypeId type) {
  std::uint32_t& marks = values_[v].marks;
  if ((marks & kType) == kType) wide_types_.erase(v.index);
  if (type.index >= kType) wide_types_.emplace(v.index, type);
  marks = (marks & ~kType) | std::min(type.index, kType);
}

TextId Graph::text_id(std::string_view text) {
  return text.empty() ? TextId() : context_->value_names.intern(text);
}

std::string_view Graph::text_of(TextId id) const { return context_->value_names.text(id); }

std::uint32_t Graph::provenance(TextId group, TextId source) {
  const std::uint32_t number = provenances_.intern({group, source});
  PW_ASSERT(number <= kProvenance, "more groups and sources than a graph can hold");
  return number;
}

void Graph::add_output(ValueId value) {
  PW_ASSERT(written_inputs_.empty(), "an output after what inputs hold at the end");
  push_output(value);
}

void Graph::add_write(ValueId input, ValueId value) {
  PW_ASSERT(is_input(input), "only inputs are written back");
  push_output(value);
  written_inputs_.push_back(input);
}

void Graph::push_output(ValueId value) {
  outputs_.push_back(value);
  slots_of_outputs_.clear();
  mark_output(value);
}

// ---- reading

std::vector<NodeId> Graph::order() const {
  std::vector<NodeId> out;
  out.reserve(node_count());
  for (NodeId n = first(); n.valid(); n = next(n)) out.push_back(n);
  return out;
}

const Attribute* Graph::attribute(NodeId n, std::string_view attribute_name) const {
  return context_->attributes.find(nodes_[n].attributes, attribute_name);
}

std::vector<ValueId> Graph::operands(NodeId n) const {
  std::vector<ValueId> out;
  out.reserve(operand_count(n));
  for (std::size_t i = 0; i < operand_count(n); ++i) out.push_back(operand(n, i));
  return out;
}

std::vector<NodeId> Graph::users(ValueId v) const {
  std::vector<NodeId> out;
  out.reserve(use_count(v));
  for (UseId u = first_use(v); u.valid(); u = next_use(u)) out.push_back(user(u));
  std::sort(out.begin(), out.end(), [&](NodeId a, NodeId b) { return label(a) < label(b); });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::size_t Graph::output_count(ValueId v) const {
  if (!is_output(v)) return 0;
  const auto more = more_outputs_.find(v.index);
  return 1 + (more == more_outputs_.end() ? 0 : more->second);
}

std::size_t Graph::bytes() const {
  constexpr std::size_t kMapEntry = 24;
  return nodes_.size() * sizeof(Node) + order_.bytes() + values_.size() * sizeof(Value) +
         uses_.size() * sizeof(Use) + (inputs_.size() + outputs_.size()) * sizeof(ValueId) +
         provenances_.bytes() + wide_uses_.size() * sizeof(WideUse) +
         (many_results_.size() + first_wide_.size() + many_uses_.size() + wide_types_.size() +
          more_outputs_.size() + node_names_.size() + reserved_.size()) *
             kMapEntry +
         (names_.size() + name_counters_.size()) * 3 * kMapEntry + undo_.size() * sizeof(Undo);
}

// ---- uses

UseId Graph::wide_use_of(NodeId n, std::size_t slot) const {
  return UseId(kWideUse | (first_wide_.at(n.index) + (slot - kSlots)));
}

std::size_t Graph::many_results(NodeId n) const { return many_results_.at(n.index); }
std::size_t Graph::many_uses(ValueId v) const { return many_uses_.at(v.index); }
TypeId Graph::wide_type(ValueId v) const { return wide_types_.at(v.index); }

void Graph::set_use_count(ValueId v, std::size_t count) {
  std::uint32_t& marks = values_[v].marks;
  const bool were_many = marks >> kUseShift == kManyUses;
  const auto shown = static_cast<std::uint32_t>(std::min<std::size_t>(count, kManyUses));
  marks = (marks & ((1u << kUseShift) - 1)) | (shown << kUseShift);
  if (shown == kManyUses)
    many_uses_[v.index] = static_cast<std::uint32_t>(count);
  else if (were_many)
    many_uses_.erase(v.index);
}

void Graph::link_use(UseId u, ValueId v) {
  Use& use = at(u);
  use.value = v;
  use.previous = {};
  use.next = {};
  if (!v.valid()) return;
  Value& value = values_[v];
  use.next = value.first_use;
  if (use.next.valid()) at(use.next).previous = u;
  value.first_use = u;
  count_use(v);
}

void Graph::unlink_use(UseId u) {
  const Use& use = at(u);
  if (!use.value.valid()) return;
  Value& value = values_[use.value];
  if (use.previous.valid())
    at(use.previous).next = use.next;
  else
    value.first_use = use.next;
  if (use.next.valid()) at(use.next).previous = use.previous;
  discount_use(use.value);
}

/// Restores a use between its former neighbours, if these are adjacent again.
void Graph::relink_use(UseId u) {
  const Use& use = at(u);
  if (!use.value.valid()) return;
  if (use.previous.valid())
    at(use.previous).next = u;
  else
    values_[use.value].first_use = u;
  if (use.next.valid()) at(use.next).previous = u;
  count_use(use.value);
}

void Graph::mark_output(ValueId v) {
  if (is_output(v))
    ++more_outputs_[v.index];
  else
    values_[v].marks |= kOutput;
}

void Graph::unmark_output(ValueId v) {
  const auto more = more_outputs_.find(v.index);
  if (more == more_outputs_.end())
    values_[v].marks &= ~kOutput;
  else if (--more->second == 0)
    more_outputs_.erase(more);
}

// ---- mutation

void Graph::set_operand(NodeId n, std::size_t i, ValueId v) {
  const UseId u = use_of(n, i);
  const Use& use = at(u);
  if (use.value.valid() && use.previous.valid())
    record(Undo::Kind::behind, u.index, use.previous.index);
  record(Undo::Kind::operand, u.index, use.value.index);
  unlink_use(u);
  link_use(u, v);
}

void Graph::set_attributes(NodeId n, AttributesId attributes) {
  record(Undo::Kind::attributes, n.index, nodes_[n].attributes.index);
  nodes_[n].attributes = attributes;
}

void Graph::set_type(ValueId v, TypeId type) {
  record(Undo::Kind::type, v.index, this->type(v).index);
  put_type(v, type);
}

void Graph::set_op(NodeId n, OpId op) {
  record(Undo::Kind::op, n.index, nodes_[n].op.index);
  put_op(n, op);
}

void Graph::put_op(NodeId n, OpId op) {
  const bool counts = alive(n);
  if (counts) --live_of(nodes_[n].op);
  nodes_[n].op = op;
  if (counts) ++live_of(op);
}

void Graph::set_output(std::size_t i, ValueId v) {
  record(Undo::Kind::output, static_cast<std::uint32_t>(i), outputs_[i].index);
  unmark_output(outputs_[i]);
  if (!slots_of_outputs_.empty()) {
    const auto [first, last] = slots_of_outputs_.equal_range(outputs_[i].index);
    slots_of_outputs_.erase(
        std::find_if(first, last, [&](const auto& s) { return s.second == i; }));
    slots_of_outputs_.emplace(v.index, static_cast<std::uint32_t>(i));
  }
  outputs_[i] = v;
  mark_output(v);
}

void Graph::set_group(NodeId n, std::string_view group_name) {
  const std::uint32_t old = nodes_[n].marks & kProvenance;
  record(Undo::Kind::provenance, n.index, old);
  set_provenance(n, provenance(text_id(group_name), provenances_[old].source));
}

void Graph::replace_uses(ValueId from, ValueId to) {
  if (from == to) return;
  PW_ASSERT(to.valid(), "replace_uses: by nothing");
  if (const std::size_t count = use_count(from); count == 1) {
    set_operand(user(first_use(from)), use_operand(first_use(from)), to);
  } else if (count > 1) {
    // Splices the whole list before the other one, so each use is touched once.
    Value &before = values_[from], &after = values_[to];
    UseId last;
    for (UseId u = before.first_use; u.valid(); last = u, u = at(u).next) at(u).value = to;
    record(Undo::Kind::last, last.index, static_cast<std::uint32_t>(count));
    record(Undo::Kind::uses, from.index, to.index);
    at(last).next = after.first_use;
    if (after.first_use.valid()) at(after.first_use).previous = last;
    after.first_use = std::exchange(before.first_use, UseId());
    set_use_count(to, use_count(to) + count);
    set_use_count(from, 0);
  }
  if (!is_output(from)) return;
  for (std::size_t i : output_slots(from)) set_output(i, to);
}

/// Returns the slots, sorted. A graph with many outputs builds an index of slots on the first
/// query.
std::vector<std::size_t> Graph::output_slots(ValueId v) {
  constexpr std::size_t kFew = 16;
  std::vector<std::size_t> out;
  if (outputs_.size() <= kFew) {
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i] == v) out.push_back(i);
    return out;
  }
  if (slots_of_outputs_.empty())
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      slots_of_outputs_.emplace(outputs_[i].index, i);
  const auto [first, last] = slots_of_outputs_.equal_range(v.index);
  for (auto it = first; it != last; ++it) out.push_back(it->second);
  std::sort(out.begin(), out.end());
  return out;
}

void Graph::erase(NodeId n) {
  for (std::size_t i = 0; i < result_count(n); ++i)
    PW_ASSERT(unused(result(n, i)),
              "erase: `" + std::string(value_name(result(n, i))) + "` is still used");
  const NodeId next = order_.next(n);
  detach(n);
  record(Undo::Kind::erased, n.index, next.index);
}

std::size_t Graph::erase_dead() {
  std::size_t erased = 0;
  for (NodeId n = last(); n.valid();) {
    const NodeId before = previous(n);
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

void Graph::drop_dead_operands() {
  if (recording_ || !undo_.empty() || dead_operands_ * 4 < uses_.size()) return;
  // Runs of kept operands are moved together: [begin, end of the node before).
  std::size_t begin = 0, dropped = 0;
  const auto keep_until = [&](std::size_t end) {
    if (dropped > 0)
      std::copy(uses_.data() + begin, uses_.data() + end, uses_.data() + (begin - dropped));
  };
  for (std::size_t i = 0; i < node_bound(); ++i) {
    Node& node = nodes_[NodeId(i)];
    const std::size_t first = node.first_operand, last = nodes_[NodeId(i + 1)].first_operand;
    node.first_operand = static_cast<std::uint32_t>(first - dropped);
    if ((node.marks & kDead) == 0 || first == last) continue;
    keep_until(first);
    begin = last;
    dropped += last - first;
  }
  keep_until(uses_.size());
  const std::size_t kept = uses_.size() - dropped;
  nodes_.back().first_operand = static_cast<std::uint32_t>(kept);
  uses_.cut(kept);
  uses_.fit(kept);
  dead_operands_ = 0;
}

}  // namespace pw
