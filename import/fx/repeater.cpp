#include "import/fx/repeater.hpp"

#include <algorithm>

namespace pw::fx {
namespace {

/// Returns the number of results before each node's first one.
std::vector<std::uint32_t> firsts_of(const Graph& graph, std::size_t begin, std::size_t end) {
  std::vector<std::uint32_t> out{0};
  for (std::size_t n = begin; n < end; ++n)
    out.push_back(out.back() + static_cast<std::uint32_t>(graph.result_count(NodeId(n))));
  return out;
}

template <class F>
void each_tensor(Value& value, const F& f) {
  if (value.kind == Value::Kind::tensor) f(value);
  for (Value& item : value.items) each_tensor(item, f);
}

}  // namespace

// ---- copying

// Returns null if the statement is new, or cannot be repeated, which `known` distinguishes.
const Repeat* Repeater::repeat_of(bool& known) {
  const std::uint32_t found = repeats_.index.find(
      key_.hash(), [&](std::uint32_t i) { return repeats_.entries[i].key == key_.words(); });
  known = found != HashIndex::kNone;
  return known && repeats_.entries[found].repeat ? &*repeats_.entries[found].repeat : nullptr;
}

// Names are unique in a dump that is copied, so a set of them is not needed; conversion needs one,
// and rebuilds it. A run must be long before the set is dropped. Rebuilding then costs no more than
// four times the nodes of the run.
void Repeater::hurry() {
  constexpr std::size_t kLeast = 64, kTimes = 4;
  ++repeats_.run;
  repeats_.quick =
      repeats_.quick || (repeats_.run >= kLeast && repeats_.run * kTimes >= graph_.node_bound());
}

void Repeater::take_time() {
  repeats_.run = 0;
  if (!repeats_.quick) return;
  repeats_.quick = false;
  graph_.trust_names(false);  // and queries the values again
}

std::uint32_t Repeater::place_of(const Statement& s) {
  const auto id = [&](const std::string& text) {
    return text.empty() ? TextId() : context_.value_names.intern(text);
  };
  if (repeats_.group != s.group || repeats_.source != s.source) {
    repeats_.group = s.group;
    repeats_.source = s.source;
    repeats_.place = graph_.place_of(id(s.group), id(s.source));
  }
  return repeats_.place;
}

template <class ValueOf, class NameOf>
void Repeater::repeat_node(const RepeatedNode& node, const Statement& s, const ValueOf& value_of,
                           const NameOf& name_of) {
  if (repeats_.quick) {
    repeats_.operands.clear();
    for (const RepeatedValue& v : node.operands) repeats_.operands.push_back(value_of(v));
    repeats_.names.clear();
    for (const RepeatedName& name : node.names)
      repeats_.names.push_back(context_.value_names.add(name_of(name)));
    graph_.add_node(node.op, repeats_.operands, node.attributes, node.types, repeats_.names,
                    node.placed ? place_of(s) : 0);
    return;
  }
  NodeSpec spec{node.op, {}, node.attributes, {}, "", "", ""};
  if (node.placed) {
    spec.group = s.group;
    spec.source = s.source;
  }
  for (const RepeatedValue& v : node.operands) spec.operands.push_back(value_of(v));
  for (std::size_t i = 0; i < node.types.size(); ++i)
    spec.results.push_back({node.types[i], name_of(node.names[i])});
  graph_.add_node(spec);
}

void Repeater::repeat(const Repeat& of, const Statement& s) {
  const std::string& target = s.targets[0].text;
  const auto first_value = graph_.value_bound();
  const auto value_of = [&](const RepeatedValue& v) {
    if (v.index == RepeatedValue::kAbsent) return ValueId();
    return v.argument ? memory_.tensors[key_.arguments()[v.index]].value
                      : ValueId(first_value + v.index);
  };
  const auto name_of = [&](const RepeatedName& name) -> std::string {
    switch (name.kind) {
      case RepeatedName::Kind::target: return target;
      case RepeatedName::Kind::item: return key_.part_names()->at(name.item).name;
      case RepeatedName::Kind::made_up: return emitter_.fresh(target);
      case RepeatedName::Kind::constant: return emitter_.fresh("c");
    }
    return target;
  };
  effects_.begin_statement();
  for (const RepeatedNode& node : of.nodes) repeat_node(node, s, value_of, name_of);
  for (const RepeatedValue& v : of.makers) effects_.add_maker(value_of(v));
  for (const RepeatedValue& v : of.dropped) effects_.drop(value_of(v));
  for (const RepeatedValue& v : of.caches) effects_.add_rope_cache(value_of(v));
  effects_.repeat_lines(of.opaque, of.reasons);
  const std::size_t first_tensor = memory_.tensors.size();
  const auto handle_of = [&](const RepeatedValue& v) {
    return v.argument ? key_.arguments()[v.index] : TensorId(first_tensor + v.index);
  };
  for (const RepeatedTensor& made : of.tensors) {
    if (made.base.index == RepeatedValue::kAbsent)
      memory_.add_storage(value_of(made.value), made.like.strides);
    else
      memory_.add_view(handle_of(made.base), made.like.steps, value_of(made.value),
                       made.like.strides);
    memory_.tensors.back().unsure = made.like.unsure;
    memory_.tensors.back().inexpressible = made.like.inexpressible;
    memory_.tensors.back().perhaps_itself = made.like.perhaps_itself;
  }
  Value& value = env_[target] = of.value;
  value.own_name = of.own_name;
  std::size_t next = 0;
  each_tensor(value, [&](Value& tensor) {
    tensor.handle = handle_of(of.handles[next++]);
    tensor.tensor = memory_.tensors[tensor.handle].value;
  });
}

// ---- what a statement became

std::optional<RepeatedName> Repeater::repeated_name(const std::string& name,
                                                    const Statement& s) const {
  using Kind = RepeatedName::Kind;
  const std::string& target = s.targets[0].text;
  if (name == target) return RepeatedName{Kind::target, 0};
  if (const TupleItems::Items* items = items_.items(target))
    for (const auto& [index, wanted] : *items)
      if (wanted.name == name) return RepeatedName{Kind::item, index};
  if (!names_.generated(name)) return std::nullopt;
  const std::string base = name.substr(0, name.rfind("__"));
  if (base == target) return RepeatedName{Kind::made_up, 0};
  if (base == "c") return RepeatedName{Kind::constant, 0};
  return std::nullopt;
}

bool Repeater::take_nodes(Repeat& out, const Statement& s, const Before& before) const {
  const std::vector<std::uint32_t> firsts = firsts_of(graph_, before.nodes, graph_.node_bound());
  std::size_t made_up = 0;
  for (std::size_t n = before.nodes; n < graph_.node_bound(); ++n) {
    const NodeId node(n);
    if (!graph_.alive(node) || graph_.result_count(node) == 0) return false;
    if (graph_.node_name(node) != graph_.value_name(graph_.result(node))) return false;
    RepeatedNode made{graph_.op(node), graph_.attributes(node), {}, {}, {}};
    made.placed = graph_.group(node) == s.group && graph_.source(node) == s.source;
    if (!made.placed && !(graph_.group(node).empty() && graph_.source(node).empty())) return false;
    for (const ValueId v : graph_.operands(node)) {
      const auto operand = repeated_value(v, before);
      if (!operand) return false;
      made.operands.push_back(*operand);
    }
    for (std::size_t i = 0; i < graph_.result_count(node); ++i) {
      const ValueId v = graph_.result(node, i);
      const auto name = repeated_name(std::string(graph_.value_name(v)), s);
      if (!name || v.index != before.values + firsts[n - before.nodes] + i) return false;
      made_up +=
          name->kind == RepeatedName::Kind::made_up || name->kind == RepeatedName::Kind::constant;
      made.types.push_back(graph_.type(v));
      made.names.push_back(*name);
    }
    out.nodes.push_back(std::move(made));
  }
  return graph_.value_bound() == before.values + firsts.back() &&
         names_.generated_count() == before.made_up + made_up && rising_names(before);
}

// Generated names are numbered in the order of the nodes.
bool Repeater::rising_names(const Before& before) const {
  std::map<std::string, int, std::less<>> last;
  for (std::size_t v = before.values; v < graph_.value_bound(); ++v) {
    const std::string name(graph_.value_name(ValueId(v)));
    if (!names_.generated(name)) continue;
    const std::size_t at = name.rfind("__");
    const int number = std::stoi(name.substr(at + 2));
    const auto [known, fresh] = last.try_emplace(name.substr(0, at), number);
    if (!fresh && known->second >= number) return false;
    known->second = number;
  }
  return true;
}

std::optional<RepeatedValue> Repeater::repeated_value(ValueId v, const Before& before) const {
  if (!v.valid()) return RepeatedValue();
  if (v.index >= before.values)
    return RepeatedValue{false, v.index - static_cast<std::uint32_t>(before.values)};
  for (std::uint32_t i = 0; i < key_.arguments().size(); ++i)
    if (memory_.tensors[key_.arguments()[i]].value == v) return RepeatedValue{true, i};
  return std::nullopt;
}

std::optional<RepeatedValue> Repeater::repeated_handle(TensorId t, const Before& before) const {
  if (!t.valid()) return RepeatedValue();
  if (t.index >= before.tensors)
    return RepeatedValue{false, t.index - static_cast<std::uint32_t>(before.tensors)};
  for (std::uint32_t i = 0; i < key_.arguments().size(); ++i)
    if (key_.arguments()[i] == t) return RepeatedValue{true, i};
  return std::nullopt;
}

bool Repeater::take_tensors(Repeat& out, const Before& before) const {
  for (std::size_t i = before.tensors; i < memory_.tensors.size(); ++i) {
    const Tensor& t = memory_.tensors[TensorId(i)];
    const auto value = repeated_value(t.value, before);
    const auto base = repeated_handle(t.base, before);
    if (!value || !base || t.seen != 0) return false;
    out.tensors.push_back({*value, *base, t});
  }
  for (std::size_t i = before.storages; i < memory_.storages.size(); ++i)
    if (memory_.storages[i].input.valid() || !memory_.storages[i].writes.empty()) return false;
  return true;
}

bool Repeater::take_trace(Repeat& out, const Statement& s, const Before& before) const {
  const auto take = [&](const std::vector<ValueId>& values, std::vector<RepeatedValue>& to) {
    for (const ValueId v : values) {
      const auto value = repeated_value(v, before);
      if (!value) return false;
      to.push_back(*value);
    }
    return true;
  };
  out.opaque = effects_.trace().opaque;
  out.reasons = effects_.trace().reasons;
  out.read = !out.opaque.empty() && read_names_.contains(s.targets[0].text);
  return take(effects_.trace().makers, out.makers) && take(effects_.trace().dropped, out.dropped) &&
         take(effects_.trace().caches, out.caches);
}

bool Repeater::take_value(Repeat& out, const Statement& s, const Before& before) {
  out.value = *env_.find(s.targets[0].text);
  out.own_name = out.value.kind == Value::Kind::tensor &&
                 graph_.value_name(out.value.tensor) == s.targets[0].text;
  bool sound = true;
  each_tensor(out.value, [&](Value& tensor) {
    const auto handle = tensor.handle.valid() ? repeated_handle(tensor.handle, before)
                                              : std::optional<RepeatedValue>();
    sound = sound && handle && memory_.tensors[tensor.handle].value == tensor.tensor;
    if (sound) out.handles.push_back(*handle);
  });
  return sound;
}

Repeater::Before Repeater::now() const {
  return {graph_.node_bound(), graph_.value_bound(), memory_.tensors.size(),
          memory_.storages.size(), names_.generated_count()};
}

// For the statement that was just converted, whose key is at hand.
void Repeater::keep_repeat(const Statement& s, Repeats::Entry entry, std::uint64_t hash,
                           const Before& before) {
  Repeat made;
  if (effects_.trace().repeatable && take_nodes(made, s, before) && take_tensors(made, before) &&
      take_trace(made, s, before) && take_value(made, s, before))
    entry.repeat = std::move(made);
  repeats_.index.insert(hash, static_cast<std::uint32_t>(repeats_.entries.size()));
  repeats_.entries.push_back(std::move(entry));
}

}  // namespace pw::fx
