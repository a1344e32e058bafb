// Exports KeptPass's records of rewrites: noting them, undoing and redoing one of them in the graph
// as it stands, whatever was rewritten elsewhere since.
//
// Nodes keep their ids: an undone rewrite leaves its nodes dead, and what it replaced is alive
// again, at the same place of the order list, which holds the dead as well. An operand of a node
// that comes back is called what it became meanwhile (now_called).
#include <algorithm>
#include <functional>
#include <utility>

#include "rewriter/kept_run.hpp"

namespace pw {

KeptPass::KeptPass() = default;
KeptPass::~KeptPass() = default;

const Graph& KeptPass::graph() const { return run_->graph; }

void KeptPass::fail(std::string_view why) {
  if (!broken_) why_ = why;
  broken_ = true;
}

// ---- the order list

/// When a node was made: inputs at 0, what is of no run any more never.
KeptPass::Time KeptPass::made_at(NodeId node) const {
  const std::uint32_t maker = node.index < maker_.size() ? maker_[node.index] : kNone;
  if (maker == kNone) return 0;
  return records_[maker].gone ? kNever : records_[maker].time;
}

/// Whether it was there when so much had been rewritten, and not more.
bool KeptPass::stood_then(NodeId node, Time time) const {
  if (made_at(node) > time) return false;
  if (run_->graph.alive(node)) return true;
  const std::uint32_t eraser = node.index < eraser_.size() ? eraser_[node.index] : kNone;
  return eraser != kNone && records_[eraser].time > time;
}

/// Behind which node one goes that is made at `time` before `target`: those made later stand
/// between.
NodeId KeptPass::place_at(NodeId target, Time time) const {
  NodeId out = target.valid() ? order_.previous(target) : order_.last();
  while (out.valid() && made_at(out) > time) out = order_.previous(out);
  return out;
}

/// Into the order list, and to the same place of the graph's.
void KeptPass::put(NodeId node, NodeId behind) {
  Graph& graph = run_->graph;
  const std::uint64_t low = behind.valid() ? graph.label(behind) : 0;
  order_.insert_behind(behind, node);
  const NodeId after = order_.next(node);
  const std::uint64_t high = after.valid() ? graph.label(after) : ~std::uint64_t{0};
  if (high - low < 2) return fail("the order list has no room at a place");
  const NodeId alive = order_.alive_from(graph, after);
  if (graph.next(node) == alive && low < graph.label(node) && graph.label(node) < high) return;
  const std::uint64_t step =
      after.valid() ? std::max<std::uint64_t>(1, (high - low) / 32)
                    : std::min<std::uint64_t>((high - low) / 2, std::uint64_t{1} << 32);
  graph.place(node, alive, low + step);
}

/// Outside of the match; the new nodes are none.
NodeId KeptPass::first_user_of(std::span<const ValueId> writes, std::span<const NodeId> own) const {
  const Graph& graph = run_->graph;
  NodeId out;
  for (ValueId v : writes)
    for (UseId u = graph.first_use(v); u.valid(); u = graph.next_use(u)) {
      const NodeId user = graph.user(u);
      if (out.valid() && graph.label(user) >= graph.label(out)) continue;
      if (std::find(own.begin(), own.end(), user) == own.end()) out = user;
    }
  return out;
}

// ---- noting

/// The engine's new nodes stand where its list of the living says; here the dead count as well.
[[gnu::flatten]] void KeptPass::placed(NodeId first_made) {
  if (broken_) return;
  RuleEngine& engine = run_->engine;
  const Graph& graph = run_->graph;
  const std::size_t bound = graph.node_bound();
  current_.first_made = first_made.index;
  current_.made = static_cast<std::uint32_t>(bound - first_made.index);
  const auto outside = [&](ValueId v) {
    for (UseId u = graph.first_use(v); u.valid(); u = graph.next_use(u))
      if (std::find(engine.own_.begin(), engine.own_.end(), graph.user(u)) == engine.own_.end())
        return true;
    return false;
  };
  const bool used = std::any_of(engine.writes_.begin(), engine.writes_.end(), outside);
  current_.first_user = used ? graph.insertion_point() : NodeId();  // where there was room made
  NodeId target = current_.first_user;
  current_.behind = {};
  if (!target.valid()) {
    NodeId latest;
    for (ValueId v : engine.reads_)
      if (const NodeId p = graph.producer(v);
          p.valid() && (!latest.valid() || graph.label(p) > graph.label(latest)))
        latest = p;
    for (NodeId n : engine.own_)
      if (!latest.valid() || graph.label(n) > graph.label(latest)) latest = n;
    target = latest.valid() ? order_.next(latest) : order_.first();
    while (target.valid() && !stood_then(target, current_.time)) target = order_.next(target);
    current_.behind = latest;
  }
  NodeId behind = place_at(target, current_.time);
  for (NodeId n = first_made; n.index < bound; ++n.index) {
    put(n, behind);
    behind = n;
  }
  current_near_.clear();
  current_.outputs = static_cast<std::uint32_t>(outputs_.size());
}

/// Who reads what the match defines, before they are led to what it becomes.
[[gnu::flatten]] void KeptPass::redirects(const Candidate& match, const Recipe& recipe) {
  if (broken_) return;
  const RuleEngine& engine = run_->engine;
  const Graph& graph = run_->graph;
  plan_ = &plan_of_current();
  for (std::size_t i = 0; i < recipe.outputs.size(); ++i) {
    const PlannedOutput& planned = plan_->outputs[i];
    const Output output{engine.writes_[i], engine.resolve(recipe.outputs[i], match),
                        planned.exclusive};
    const NodeId producer = graph.producer(output.to);
    const OpId after = producer.valid() ? graph.op(producer) : planned.before;
    for (UseId u = graph.first_use(output.from); u.valid(); u = graph.next_use(u)) {
      const OpId op = graph.op(graph.user(u));
      if (!planned.alike || edges_.reads(planned.before, op) || edges_.reads(after, op))
        current_near_.push_back(graph.user(u));
    }
    if (!planned.alike && producer.valid()) current_near_.push_back(producer);
    if (!output.exclusive)
      moved_[static_cast<std::uint32_t>(outputs_.size())] = uses_of(output.from);
    outputs_.push_back(output);
  }
}

std::vector<KeptPass::Moved> KeptPass::uses_of(ValueId value) const {
  const Graph& graph = run_->graph;
  std::vector<Moved> out;
  for (UseId u = graph.first_use(value); u.valid(); u = graph.next_use(u))
    out.push_back({graph.user(u), static_cast<std::uint32_t>(graph.use_operand(u))});
  if (!graph.is_output(value)) return out;
  for (std::uint32_t i = 0; i < graph.outputs().size(); ++i)
    if (graph.outputs()[i] == value) out.push_back({NodeId(), i});
  return out;
}

/// The rewrite is done.
[[gnu::flatten]] void KeptPass::made() {
  if (broken_) return;
  RuleEngine& engine = run_->engine;
  const auto number = static_cast<std::uint32_t>(records_.size());
  const auto add = [](auto& to, const auto& items) {
    to.insert(to.end(), items.data(), items.data() + items.size());
    return static_cast<std::uint32_t>(items.size());
  };
  Record& record = records_.emplace_back(current_);
  record.ids = static_cast<std::uint32_t>(ids_.size());
  NodeId* const ids =
      ids_.room_for(match_->nodes.size() + engine.erased_.size() + engine.created_.size());
  NodeId* out = std::copy(match_->nodes.begin(), match_->nodes.end(), ids);
  record.nodes = static_cast<std::uint32_t>(match_->nodes.size());
  record.own = static_cast<std::uint32_t>(engine.own_.size());
  for (NodeId n : engine.erased_) {
    if (n.index >= record.first_made) continue;  // a new one that nothing needed stays away
    *out++ = n;
    eraser_[n.index] = number;
  }
  record.erased = static_cast<std::uint32_t>(out - ids) - record.nodes;
  out = std::copy(engine.created_.begin(), engine.created_.end(), out);
  record.created = static_cast<std::uint32_t>(engine.created_.size());
  ids_.add(static_cast<std::size_t>(out - ids));
  record.values = static_cast<std::uint32_t>(values_.size());
  std::copy(match_->values.begin(), match_->values.end(), values_.room_for(match_->values.size()));
  values_.add(match_->values.size());
  record.output_count = static_cast<std::uint32_t>(outputs_.size()) - record.outputs;
  record.applied = true;
  for (std::uint32_t i = 0; i < record.made; ++i) {
    maker_.push_back(number);
    eraser_.push_back(kNone);
  }
  (building_ ? sequence_ : added_).push_back(number);
  note_touches(number);
  if (building_) return;
  ++counters_.fresh;
  current_nodes_.clear();
  add(current_nodes_, match_->nodes);
  add(current_nodes_, engine.created_);
  add(current_nodes_, engine.erased_);
  around_.clear();
  around(current_nodes_, around_);
  disturb(around_, now_);
  if (!waited_.empty()) restored_.insert(restored_.end(), around_.begin(), around_.end());
  if (restored_.empty()) return;
  for (NodeId n : restored_)
    if (run_->graph.alive(n)) engine.touched_.push_back(n);
  restored_.clear();
  RuleEngine::sort_once(engine.touched_);
}

void KeptPass::note_touches(std::uint32_t number) {
  const Record& record = records_[number];
  if (touch_head_.size() < run_->graph.node_bound())
    touch_head_.resize(run_->graph.node_bound() * 3 / 2, kNone);
  for (NodeId n : nodes_of(record)) touch(n, number, true);
  for (NodeId n : erased_by(record).subspan(record.own)) touch(n, number, true);
  for (std::uint32_t i = 0; i < record.made; ++i)
    touch(touch_head_[record.first_made + i], number, true);
  touch(record.first_user, number, false);
  for (NodeId n : current_near_) touch(n, number, false);
  note_reads(record);
}

void KeptPass::touch_value(ValueId value, std::uint32_t record) {
  if (value_touch_head_.size() <= value.index)
    value_touch_head_.resize(run_->graph.value_bound() * 3 / 2, kNone);
  touch(value_touch_head_[value.index], record, false);
}

/// Producers of what was read: where another number of uses, or a use by another op of a pattern,
/// can be told from before.
void KeptPass::note_reads(const Record& record) {
  const Graph& graph = run_->graph;
  const auto number = static_cast<std::uint32_t>(&record - records_.data());
  for (const PlannedRead& read : plan_->reads) {
    const ValueId v = match_->values[read.value];
    if (!v.valid()) continue;
    if (read.shared) touch_value(v, number);
    const NodeId producer = graph.producer(v);
    if (!producer.valid()) continue;
    const OpId op = graph.op(producer);
    if (read.always ||
        std::any_of(read.by.begin(), read.by.end(), [&](OpId by) { return edges_.reads(op, by); }))
      touch(producer, number, false);
  }
  for (NodeId n : erased_by(record).subspan(record.own)) note_unneeded(n, number);
  for (std::uint32_t i = 0; record.created < record.made && i < record.made; ++i)
    if (const NodeId n(std::size_t{record.first_made + i}); !graph.alive(n))
      note_unneeded(n, number);
}

/// Nothing is planned of a node that went because nothing needed it.
void KeptPass::note_unneeded(NodeId node, std::uint32_t record) {
  const Graph& graph = run_->graph;
  for (std::size_t k = 0; k < graph.operand_count(node); ++k) {
    const ValueId v = graph.operand(node, k);
    if (!v.valid()) continue;
    if (edges_.shares(graph.op(node))) touch_value(v, record);
    touch(graph.producer(v), record, false);
  }
}

/// What own and new nodes read, and types, are the same of all rewrites with one verdict.
const KeptPass::Plan& KeptPass::plan_of_current() {
  const RuleEngine::Prepared& prepared = run_->engine.rules_[current_.rule];
  if (plans_.size() <= current_.rule) plans_.resize(run_->engine.rules_.size());
  std::vector<Plan>& plans = plans_[current_.rule];
  if (plans.size() <= current_.verdict) plans.resize(prepared.verdicts->size());
  Plan& plan = plans[current_.verdict];
  if (std::exchange(plan.known, true)) return plan;
  const Rule& rule = prepared.ast();
  const Recipe& recipe = prepared.verdicts->number(current_.verdict).recipe;
  std::vector<PlannedRead> reads(rule.values.size());
  std::vector<int> uses(rule.values.size(), 0);  // new ones less old ones
  const auto read = [&](std::uint32_t value, OpId by, int change) {
    reads[value].value = value;
    reads[value].by.push_back(by);
    reads[value].shared = reads[value].shared || edges_.shares(by);
    uses[value] += change;
  };
  for (PatternNodeId n : prepared.layout().own)
    for (PatternValueId v : rule.nodes[n].operands) read(v.index, rule.nodes[n].op, -1);
  for (const Recipe::NewNode& node : recipe.nodes)
    for (std::uint32_t k = 0; k < node.operand_count; ++k)
      if (const Recipe::Source source = recipe.operands[node.first_operand + k];
          !source.absent() && !source.fresh())
        read(source.index(), node.op, 1);
  for (PlannedRead& one : reads) {
    const PatternNodeId producer = rule.values[PatternValueId(one.value)].producer;
    if (one.by.empty() || (producer.valid() && rule.nodes[producer].own())) continue;
    one.always = one.shared || current_.may_change_nothing || uses[one.value] != 0;
    plan.reads.push_back(std::move(one));
  }
  const std::vector<PatternValueId>& outputs = prepared.layout().outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Recipe::Source to = recipe.outputs[i];
    PlannedOutput output;
    output.before = rule.nodes[rule.values[outputs[i]].producer].op;
    output.exclusive = to.fresh() && std::count_if(recipe.outputs.begin(), recipe.outputs.end(),
                                                   [&](Recipe::Source other) {
                                                     return other.code == to.code;
                                                   }) == 1;
    output.alike = output.exclusive &&
                   recipe.types[to.index()] == run_->graph.type(match_->values[outputs[i].index]);
    plan.outputs.push_back(output);
  }
  return plan;
}

// ---- undoing and redoing

/// What a value became, or was, in the graph as it stands; invalid where nothing is left of it.
ValueId KeptPass::now_called(ValueId value) const {
  const Graph& graph = run_->graph;
  for (std::size_t steps = 0; steps < 1'000'000; ++steps) {
    if (!value.valid()) return value;
    const NodeId producer = graph.producer(value);
    if (!producer.valid() || graph.alive(producer)) return value;
    const std::uint32_t maker = maker_[producer.index], eraser = eraser_[producer.index];
    const bool back = maker != kNone && !records_[maker].applied;
    if (!back && eraser == kNone) return {};
    const Record& record = records_[back ? maker : eraser];
    ValueId next;
    for (std::uint32_t i = 0; i < record.output_count; ++i) {
      const Output& output = outputs_[record.outputs + i];
      if (back && output.to == value && output.exclusive) next = output.from;
      if (!back && output.from == value) next = output.to;
    }
    value = next;
  }
  return {};
}

/// A dead node keeps its operands.
bool KeptPass::revive(NodeId node) {
  Graph& graph = run_->graph;
  if (graph.alive(node)) return fail("a node to be brought back is there"), false;
  std::vector<ValueId> operands;
  for (std::size_t k = 0; k < graph.operand_count(node); ++k) {
    const ValueId before = graph.operand(node, k);
    ValueId now = now_called(before);
    // Nobody needed it, once this node was gone.
    for (int tries = 0; before.valid() && !now.valid() && tries < 8 && !broken_; ++tries) {
      const std::uint32_t eraser = eraser_[graph.producer(before).index];
      if (eraser == kNone || !records_[eraser].applied) break;
      undo(eraser);
      now = now_called(before);
    }
    if (broken_) return false;
    if (before.valid() && !now.valid()) return fail("an operand is gone"), false;
    operands.push_back(now);
  }
  graph.revive(node, order_.alive_from(graph, order_.next(node)), operands);
  return true;
}

bool KeptPass::erase(NodeId node) {
  Graph& graph = run_->graph;
  if (!graph.alive(node)) return fail("a node to be erased is gone"), false;
  for (std::size_t k = 0; k < graph.result_count(node); ++k)
    if (!graph.unused(graph.result(node, k)))
      return fail("a node to be erased is still used"), false;
  graph.erase(node);
  return true;
}

/// All that matched, made or erased the node later.
void KeptPass::undo_later(NodeId node, Time time) {
  if (node.index >= touch_head_.size()) return;
  for (std::uint32_t t = touch_head_[node.index]; t != kNone; t = touches_[t].next)
    if (const Touch touch = touches_[t];
        touch.strong() && records_[touch.record()].applied && records_[touch.record()].time > time)
      undo(touch.record());
}

void KeptPass::undo(std::uint32_t number) {
  const Record record = records_[number];
  if (!record.applied || broken_) return;
  for (NodeId n : nodes_of(record))
    if (n.valid()) undo_later(n, record.time);
  for (std::uint32_t i = 0; i < record.made; ++i)
    undo_later(NodeId(std::size_t{record.first_made + i}), record.time);
  for (std::uint32_t i = 0; i < record.output_count; ++i)
    if (!outputs_[record.outputs + i].exclusive)
      for (const Moved& use : std::vector<Moved>(moved_[record.outputs + i]))
        if (use.user.valid()) undo_later(use.user, record.time);
  if (broken_) return;
  Graph& graph = run_->graph;
  const std::span<const NodeId> erased = erased_by(record);  // nothing is recorded here
  for (auto n = erased.rbegin(); n != erased.rend(); ++n)
    if (!revive(*n)) return;
  for (NodeId n : erased) eraser_[n.index] = kNone;
  for (std::uint32_t i = record.output_count; i-- > 0;) {
    const Output& output = outputs_[record.outputs + i];
    if (output.exclusive) {
      graph.replace_uses(output.to, output.from);
      continue;
    }
    const ValueId to = now_called(output.to);
    for (const Moved& use : moved_[record.outputs + i]) {
      if (!use.user.valid()) {
        if (graph.outputs()[use.slot] != to) return fail("an output is something else");
        graph.set_output(use.slot, output.from);
        continue;
      }
      if (!graph.alive(use.user)) continue;
      if (graph.operand(use.user, use.slot) != to && graph.operand(use.user, use.slot) != output.to)
        return fail("a use is of something else");
      graph.set_operand(use.user, use.slot, output.from);
    }
  }
  const std::span<const NodeId> created = created_by(record);
  for (auto n = created.rbegin(); n != created.rend(); ++n)
    if (!erase(*n)) return;
  records_[number].applied = false;
  undone_.emplace_back(record.time, number);
  std::push_heap(undone_.begin(), undone_.end(), std::greater<>());
  ++counters_.undone;
  around(nodes_of(record), restored_);
  around(erased.subspan(record.own), restored_);
}

/// As it was, the first of those undone; its match is there, and its operands are what they were.
void KeptPass::redo(std::uint32_t number) {
  std::pop_heap(undone_.begin(), undone_.end(), std::greater<>());
  undone_.pop_back();
  const Record record = records_[number];
  Graph& graph = run_->graph;
  for (NodeId n : created_by(record))
    if (!revive(n)) return;
  for (std::uint32_t i = 0; i < record.output_count; ++i) {
    const Output& output = outputs_[record.outputs + i];
    const ValueId to = now_called(output.to);
    if (!to.valid()) return fail("an output is gone");
    if (!output.exclusive) moved_[record.outputs + i] = uses_of(output.from);
    graph.replace_uses(output.from, to);
  }
  for (NodeId n : erased_by(record)) {
    if (!erase(n)) return;
    eraser_[n.index] = number;
  }
  records_[number].applied = true;
  ++counters_.redone;
}

}  // namespace pw
