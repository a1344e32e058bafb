#include "import/fx/repeater.hpp"

#include <bit>

namespace pw::fx {
namespace {

enum class Mark : std::uint64_t {
  tensor = 1,
  number,
  word,
  integer,
  real,
  string,
  boolean,
  none,
  list,
  tuple,
  call,
  item
};

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

// ---- what a statement depends on

bool Repeater::tensor_key(const Value& value) {
  Repeats<Value, Wanted>::Key& key = repeats_.key;
  if (!value.handle.valid()) return false;
  const Tensor& t = memory_.tensors[value.handle];
  const TypeId type = graph_.type(t.value);
  if (t.value != value.tensor || t.seen != 0 || !memory_.storage_of(value.handle).writes.empty() ||
      !t.unsure.empty() || !t.inexpressible.empty() || t.now.valid() || type == Types::unknown())
    return false;
  std::vector<TensorId>& arguments = repeats_.arguments;
  const auto known = std::find(arguments.begin(), arguments.end(), value.handle);
  key.push_back(static_cast<std::uint64_t>(Mark::tensor));
  key.push_back(static_cast<std::uint64_t>(known - arguments.begin()));
  if (known != arguments.end()) return true;
  // One value with two handles: it would be ambiguous which of them a result is a view of.
  for (const TensorId other : arguments)
    if (memory_.tensors[other].value == t.value) return false;
  arguments.push_back(value.handle);
  key.push_back(type.index);
  if (!t.strides) {
    key.push_back(~std::uint64_t{0});
  } else {
    for (const DimId stride : *t.strides) key.push_back(stride.index);
  }
  if (!context_.types[type].shape.empty()) return true;
  const NodeId maker = graph_.producer(t.value);  // a literal of rank 0 yields in promotion
  key.push_back(maker.valid() && graph_.op_of(maker).is_literal() ? 1 : 0);
  return true;
}

bool Repeater::name_key(const Expr& e) {
  Repeats<Value, Wanted>::Key& key = repeats_.key;
  const Value* known = env_.find(e.text);
  if (known == nullptr) {
    if (e.text.starts_with("self")) return false;
    key.push_back(static_cast<std::uint64_t>(Mark::word));
    key.push_back(repeats_.words.intern(e.text).index);
    return true;
  }
  const Value& value = *known;
  if (value.kind == Value::Kind::tensor) return tensor_key(value);
  if (value.kind != Value::Kind::integer) return false;
  key.push_back(static_cast<std::uint64_t>(Mark::number));
  key.push_back(symbols_.merged(value.dim).index);
  return true;
}

bool Repeater::expression_key(const Expr& e) {
  Repeats<Value, Wanted>::Key& key = repeats_.key;
  const auto put = [&](Mark mark, std::uint64_t what) {
    key.push_back(static_cast<std::uint64_t>(mark));
    key.push_back(what);
  };
  switch (e.kind) {
    case Expr::Kind::name: return name_key(e);
    case Expr::Kind::integer:
      put(Mark::integer, static_cast<std::uint64_t>(e.integer));
      return true;
    case Expr::Kind::real: put(Mark::real, std::bit_cast<std::uint64_t>(e.real)); return true;
    case Expr::Kind::string: put(Mark::string, repeats_.words.intern(e.text).index); return true;
    case Expr::Kind::boolean: put(Mark::boolean, e.integer != 0 ? 1 : 0); return true;
    case Expr::Kind::none: put(Mark::none, 0); return true;
    case Expr::Kind::list: put(Mark::list, e.args.size()); break;
    case Expr::Kind::tuple: put(Mark::tuple, e.args.size()); break;
    case Expr::Kind::call:
      put(Mark::call, repeats_.words.intern(e.text).index);
      key.push_back(e.args.size() << 32 | e.keywords.size());
      for (const std::string& word : e.keywords) key.push_back(repeats_.words.intern(word).index);
      break;
    case Expr::Kind::index:
    case Expr::Kind::slice:
    case Expr::Kind::binary: return false;
  }
  for (const Expr& arg : e.args)
    if (!expression_key(arg)) return false;
  return true;
}

// Computes the key; returns false if the statement must be converted, and nothing of it kept.
bool Repeater::statement_key(const Statement& s) {
  if (merges_ != symbols_.merges()) repeats_ = {};  // they have the old symbols
  merges_ = symbols_.merges();
  repeats_.key.clear();
  repeats_.arguments.clear();
  const bool may = !one_by_one_ && names_.distinct() && symbols_.empty() &&
                   s.kind == Statement::Kind::assign && s.targets.size() == 1 &&
                   s.targets[0].kind == Expr::Kind::name && s.value.kind == Expr::Kind::call &&
                   is_word(s.targets[0].text) && items_.keys(s.targets[0].text) == nullptr;
  if (!may || !expression_key(s.value)) return false;
  Repeats<Value, Wanted>::Key& key = repeats_.key;
  key.push_back(repeats_.words.intern(s.type).index);
  key.push_back(s.group.empty() && s.source.empty() ? 0 : 1);
  repeats_.items = items_.items(s.targets[0].text);
  if (repeats_.items != nullptr)
    for (const auto& [index, wanted] : *repeats_.items) {
      key.push_back(static_cast<std::uint64_t>(Mark::item));
      key.push_back(static_cast<std::uint64_t>(index));
      key.push_back(wanted.type.index);
    }
  repeats_.hash = 0;
  for (const std::uint64_t word : key) repeats_.hash = combine(repeats_.hash, word);
  return true;
}

// ---- copying

// Returns null if the statement is new, or cannot be repeated, which `known` distinguishes.
const Repeat<Value>* Repeater::repeat_of(bool& known) {
  const std::uint32_t found = repeats_.index.find(
      repeats_.hash, [&](std::uint32_t i) { return repeats_.entries[i].key == repeats_.key; });
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

void Repeater::repeat(const Repeat<Value>& of, const Statement& s) {
  const std::string& target = s.targets[0].text;
  const auto first_value = graph_.value_bound();
  const auto value_of = [&](const RepeatedValue& v) {
    if (v.index == RepeatedValue::kAbsent) return ValueId();
    return v.argument ? memory_.tensors[repeats_.arguments[v.index]].value
                      : ValueId(first_value + v.index);
  };
  const auto name_of = [&](const RepeatedName& name) -> std::string {
    switch (name.kind) {
      case RepeatedName::Kind::target: return target;
      case RepeatedName::Kind::item: return repeats_.items->at(name.item).name;
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
    return v.argument ? repeats_.arguments[v.index] : TensorId(first_tensor + v.index);
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

bool Repeater::take_nodes(Repeat<Value>& out, const Statement& s, const Before& before) const {
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
  for (std::uint32_t i = 0; i < repeats_.arguments.size(); ++i)
    if (memory_.tensors[repeats_.arguments[i]].value == v) return RepeatedValue{true, i};
  return std::nullopt;
}

std::optional<RepeatedValue> Repeater::repeated_handle(TensorId t, const Before& before) const {
  if (!t.valid()) return RepeatedValue();
  if (t.index >= before.tensors)
    return RepeatedValue{false, t.index - static_cast<std::uint32_t>(before.tensors)};
  for (std::uint32_t i = 0; i < repeats_.arguments.size(); ++i)
    if (repeats_.arguments[i] == t) return RepeatedValue{true, i};
  return std::nullopt;
}

bool Repeater::take_tensors(Repeat<Value>& out, const Before& before) const {
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

bool Repeater::take_trace(Repeat<Value>& out, const Statement& s, const Before& before) const {
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

bool Repeater::take_value(Repeat<Value>& out, const Statement& s, const Before& before) {
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

// Of the statement that was just converted, whose key is at hand.
void Repeater::keep_repeat(const Statement& s, Repeats<Value, Wanted>::Entry entry,
                           std::uint64_t hash, const Before& before) {
  Repeat<Value> made;
  if (effects_.trace().repeatable && take_nodes(made, s, before) && take_tensors(made, before) &&
      take_trace(made, s, before) && take_value(made, s, before))
    entry.repeat = std::move(made);
  repeats_.index.insert(hash, static_cast<std::uint32_t>(repeats_.entries.size()));
  repeats_.entries.push_back(std::move(entry));
}

}  // namespace pw::fx
