// Exports KeptPass's build, update and replay; edits of rules are in kept_change.cpp.
//
// update() walks through the run before, in its order, without touching what it leaves as it was:
// `now_` is how far it has come. Around every node whose state differs from that of the run before
// the graph stands as it is at `now_`: what was rewritten there later has been undone, and waits in
// undone_. The engine's heap holds the matches that are there. The first of them is taken before
// the first kept rewrite with a larger key. If it is the rewrite that the run before made at this
// point, nothing differs because of it, and it is made again with the same ids; otherwise its
// surroundings differ from now on.
#include <algorithm>
#include <functional>
#include <iterator>

#include "rewriter/kept_run.hpp"

namespace pw {
namespace {

constexpr std::size_t kMostEdited = 512;  // nodes; beyond so many a run from scratch is as fast

bool same_facts(const Facts& a, const Facts& b) {
  const auto same = [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.min == y.second.min && x.second.max == y.second.max &&
           x.second.multiple == y.second.multiple && x.second.role == y.second.role;
  };
  return std::ranges::equal(a.symbols, b.symbols, same);
}

}  // namespace

bool KeptPass::fits_keeping() {
  RuleEngine& engine = run_->engine;
  if (!engine.local_) fail("a rule looks at more than its nodes, their types and uses");
  if (run_->state.barriers) fail("ops with effects keep an order");
  if (has_awaited_ops(run_->graph)) fail("an op is new for which rules had been left out");
  bool above = false;
  std::vector<const Rule*> rules;
  for (const RuleEngine::Prepared& rule : engine.rules_) {
    rules.push_back(&rule.ast());
    above = above || !rule.above.empty();
    if (rule.ast().nodes.size() > 32) fail("a rule has more than 32 nodes");
  }
  edges_ = PatternEdges(rules);
  reach_ = (above ? 2 : 1) * edges_.reach();
  return !broken_;
}

/// Whether there are nodes for which the program is not complete.
bool KeptPass::has_awaited_ops(const Graph& graph) const {
  const std::vector<std::uint8_t>& awaits = run_->engine.program_.awaits;
  for (std::size_t op = 0; op < awaits.size(); ++op)
    if (awaits[op] != 0 && graph.node_count(OpId(op)) > 0) return true;
  return false;
}

/// Of the run before all but the memory.
void KeptPass::forget() {
  again_ = {};
  why_.clear();
  counters_ = {};
  broken_ = crowded_ = false;
  now_ = 0;
  const auto clear = [](auto&... lists) { (lists.clear(), ...); };
  clear(records_, outputs_, sequence_, added_, undone_, touch_head_, value_touch_head_, moved_,
        waited_, deferred_, changed_, restored_, node_here_, value_here_, node_there_, plans_);
  const auto empty = [](auto&... arrays) { (arrays.cut(0), ...); };
  empty(ids_, values_, touches_);
}

bool KeptPass::build(std::shared_ptr<const RuleSet> rules, const Strategy& strategy,
                     const Env& params, const Graph& input) {
  const std::shared_ptr<const RuleSet> rules_before = std::exchange(rules_, std::move(rules));
  const std::unique_ptr<Run> before = std::move(run_);
  strategy_ = &strategy;
  params_ = params;
  if (before) *before->shared = input;
  run_ = std::make_unique<Run>(before ? before->shared : std::make_shared<Graph>(input), *rules_,
                               strategy, params_);
  if (before) run_->engine.take_memory_of(before->engine);
  return rewrite();
}

/// From scratch, by the rules of run_, whose graph is the input.
bool KeptPass::rewrite() {
  forget();
  RuleEngine& engine = run_->engine;
  const Graph& input = run_->graph;
  run_->state.barriers = has_barriers(input);
  engine.limit_ = 10'000 + run_->options.limits.per_node * input.node_count();
  inputs_nodes_ = input.node_bound();
  inputs_values_ = input.value_bound();
  order_.reset(run_->graph);
  maker_.assign(inputs_nodes_, kNone);
  eraser_.assign(inputs_nodes_, kNone);
  engine.kept_ = this;
  building_ = true;
  engine.start();
  if (fits_keeping()) pump();
  building_ = false;
  first_records_ = records_.size();
  return !broken_;
}

/// Takes what waits, until nothing does.
void KeptPass::pump() {
  RuleEngine& engine = run_->engine;
  const std::uint64_t version = run_->graph.renumberings();
  while (!broken_) {
    if (!building_ && ++events_ > most_events_) return fail("the edit reaches too far");
    if (engine.heap_.empty() && engine.seeds_.empty() && !engine.sweep_.valid()) {
      const Time undone = undone_.empty() ? kNever : undone_.front().first;
      if (!deferred_.empty() && deferred_.begin()->first <= undone)
        come_to(deferred_.begin()->first);
      else if (!undone_.empty())
        drop(undone_.front().second);
      else
        break;
      continue;
    }
    if (engine.step()) return fail("the pass does not come to an end by itself");
    if (run_->graph.renumberings() != version) fail("the order list was relabelled");
  }
  if (broken_) return;
  settle_sequence();
  std::erase_if(engine.parked_,
                [&](const RuleEngine::Entry& entry) { return !engine.rebind(entry); });
  if (!engine.parked_.empty()) fail("matches wait for each other");
  if (!engine.refused_.empty()) fail("a match is in the way of itself");
  if (!run_->state.report.conditions.empty()) fail("a rule rests on a condition");
  if (!run_->state.report.warnings.empty()) fail("the run warns of a rule");
  if (sequence_.size() >= engine.limit_ || sequence_.size() >= run_->options.limits.rewrites)
    fail("the limit of rewrites");
}

/// What the update made joins what it left, and what it dropped leaves.
void KeptPass::settle_sequence() {
  if (counters_.dropped == 0 && added_.empty()) return;
  std::vector<std::uint32_t> all;
  all.reserve(sequence_.size() + added_.size());
  std::merge(sequence_.begin(), sequence_.end(), added_.begin(), added_.end(),
             std::back_inserter(all),
             [&](std::uint32_t a, std::uint32_t b) { return records_[a].time < records_[b].time; });
  std::erase_if(all, [&](std::uint32_t number) { return records_[number].gone; });
  sequence_ = std::move(all);
  added_.clear();
  if (!crowded_) return;
  Time time = 0;
  for (std::uint32_t number : sequence_) records_[number].time = time += kStep;
  crowded_ = false;
}

// ---- what the engine calls

/// The first kept rewrite after now_ that comes after a match with this key.
std::size_t KeptPass::next_kept(std::uint64_t key) {
  while (cursor_ < sequence_.size() && records_[sequence_[cursor_]].time <= now_) ++cursor_;
  std::size_t at = cursor_;
  while (at < sequence_.size()) {
    const Record& record = records_[sequence_[at]];
    if (record.applied && record.key > key) break;
    ++at;
  }
  return at;
}

bool KeptPass::arrives(std::uint32_t rule, std::uint32_t verdict_number,
                       const RuleEngine::Entry* known, const Verdict& verdict) {
  if (broken_) return true;
  RuleEngine& engine = run_->engine;
  if (engine.force_) return fail("matches wait for each other"), true;
  if (engine.guard_.suspected()) return fail("rules rewrite each other's results often"), true;
  const Candidate& match = engine.rules_[rule].taken;
  match_ = &match;
  current_ = Record();
  current_.rule = rule;
  current_.key = engine.position_of(engine.rules_[rule], match);
  current_.verdict = verdict_number;
  current_.swaps = RuleEngine::swaps_of(match);
  current_.may_change_nothing = verdict.recipe.may_change_nothing;
  if (building_) {
    now_ = current_.time = now_ + kStep;
    return false;
  }
  const RuleEngine::Entry entry = *known;
  const auto later = [&] {
    engine.heap_.push_back(entry);
    std::push_heap(engine.heap_.begin(), engine.heap_.end(), RuleEngine::Later{&engine});
    engine.remember(entry);
  };
  // It may hold what a kept rewrite makes only later.
  Time there = 0;
  for (NodeId n : match.nodes)
    if (n.valid()) there = std::max(there, made_at(n));
  if (there > now_) return deferred_.emplace(there, entry), true;
  const std::size_t place = next_kept(entry.position);
  const Time end = place < sequence_.size() ? records_[sequence_[place]].time : kNever;
  const Time others = deferred_.empty() ? kNever : deferred_.begin()->first;
  while (!undone_.empty() && undone_.front().first < std::min(end, others)) {
    const std::uint32_t first = undone_.front().second;
    if (!same(records_[first], match)) {
      if (drop(first)) return later(), true;
      continue;
    }
    now_ = records_[first].time;
    redo(first);
    std::vector<NodeId> nodes(match.nodes);
    const std::span<const NodeId> created = created_by(records_[first]);
    nodes.insert(nodes.end(), created.begin(), created.end());
    const std::span<const NodeId> erased = erased_by(records_[first]);
    nodes.insert(nodes.end(), erased.begin(), erased.end());
    around_.clear();
    around(nodes, around_);
    uncover(around_);
    ask(around_);
    return true;
  }
  if (others < end) return later(), come_to(others), true;
  // Nothing that comes later may have been done here.
  around_.clear();
  around(match.nodes, around_);
  const Time before = place > 0 ? records_[sequence_[place - 1]].time : 0;
  if (disturb(around_, std::max(now_, before))) {
    later();
    ask_restored(around_);
    return true;
  }
  if (broken_) return true;
  now_ = current_.time = time_before(place);
  return false;
}

/// Matches whose nodes have been made by then are there.
void KeptPass::come_to(Time time) {
  RuleEngine& engine = run_->engine;
  now_ = std::max(now_, time);
  while (!deferred_.empty() && deferred_.begin()->first <= now_) {
    const RuleEngine::Entry entry = deferred_.begin()->second;
    deferred_.erase(deferred_.begin());
    engine.heap_.push_back(entry);
    std::push_heap(engine.heap_.begin(), engine.heap_.end(), RuleEngine::Later{&engine});
    engine.remember(entry);
  }
}

/// A time between the rewrite before and the one at this place.
KeptPass::Time KeptPass::time_before(std::size_t place) {
  const Time low = std::max(now_, place > 0 ? records_[sequence_[place - 1]].time : 0);
  if (place == sequence_.size()) return low + kStep;
  const Time between = (records_[sequence_[place]].time - low) / 2;
  if (between == 0) fail("there is no time left between two rewrites");
  crowded_ = crowded_ || between < kFine;
  return low + std::min(between, kFine);
}

/// Whether a match is a rewrite of the run before, and would do what that did.
bool KeptPass::same(const Record& record, const Candidate& match) const {
  const Graph& graph = run_->graph;
  const RuleEngine& engine = run_->engine;
  if (record.rule != current_.rule || record.verdict != current_.verdict ||
      record.swaps != current_.swaps || record.key != current_.key ||
      record.made != record.created || record.own != record.erased ||
      !std::ranges::equal(nodes_of(record), match.nodes))
    return false;
  for (std::size_t i = 0; i < match.values.size(); ++i)
    if (now_called(values_[record.values + i]) != match.values[i]) return false;
  std::vector<ValueId> writes;
  for (PatternValueId id : engine.rules_[current_.rule].layout().outputs)
    writes.push_back(match.values[id.index]);
  const std::span<const NodeId> own = own_of(record);
  if (first_user_of(writes, own) != record.first_user) return false;
  // Nothing more may become unneeded than did then.
  const auto uses_by = [&](std::span<const NodeId> nodes, ValueId value, bool dead) {
    std::size_t out = 0;
    for (NodeId n : nodes)
      for (std::size_t k = 0; k < graph.operand_count(n); ++k) {
        const ValueId v = graph.operand(n, k);
        out += v.valid() && (dead ? now_called(v) : v) == value ? 1 : 0;
      }
    return out;
  };
  const auto needed = [&](NodeId n) {
    if (is_barrier(graph.op_of(n))) return true;
    for (std::size_t k = 0; k < graph.result_count(n); ++k) {
      const ValueId v = graph.result(n, k);
      if (graph.is_output(v) || graph.use_count(v) > uses_by(own, v, false) ||
          uses_by(created_by(record), v, true) > 0)
        return true;
      for (std::uint32_t i = 0; i < record.output_count; ++i)
        if (now_called(outputs_[record.outputs + i].to) == v) return true;
    }
    return false;
  };
  const auto is_own = [&](NodeId n) { return std::find(own.begin(), own.end(), n) != own.end(); };
  for (NodeId n : match.nodes)
    if (n.valid() && !is_own(n) && !needed(n)) return false;
  for (NodeId n : own)
    for (std::size_t k = 0; k < graph.operand_count(n); ++k) {
      const ValueId v = graph.operand(n, k);
      const NodeId producer = v.valid() ? graph.producer(v) : NodeId();
      if (producer.valid() && !is_own(producer) && !needed(producer)) return false;
    }
  return true;
}

/// The first of those undone, which this run does not make at this point. Whether anything is asked
/// because of that: what it leaves as it was had been asked when it was undone.
bool KeptPass::drop(std::uint32_t number) {
  std::pop_heap(undone_.begin(), undone_.end(), std::greater<>());
  undone_.pop_back();
  Record& record = records_[number];
  now_ = std::max(now_, record.time);
  record.gone = true;
  ++counters_.dropped;
  current_near_.assign(nodes_of(record).begin(), nodes_of(record).end());
  const std::span<const NodeId> erased = erased_by(record);
  current_near_.insert(current_near_.end(), erased.begin(), erased.end());
  current_near_.push_back(record.first_user);
  around_.clear();
  around(current_near_, around_);
  const bool undoes = disturb(around_, now_);
  if (!undoes && waited_.empty()) return false;
  ask_restored(around_);
  return true;
}

// ---- surroundings

/// These, what they read, and what reads them; what is dead too.
void KeptPass::around(std::span<const NodeId> nodes, std::vector<NodeId>& out) const {
  const Graph& graph = run_->graph;
  for (NodeId n : nodes) {
    if (!n.valid()) continue;
    out.push_back(n);
    for (std::size_t k = 0; k < graph.operand_count(n); ++k) {
      const ValueId v = now_called(graph.operand(n, k));
      if (v.valid() && graph.producer(v).valid()) out.push_back(graph.producer(v));
    }
    for (std::size_t k = 0; k < graph.result_count(n); ++k) {
      const ValueId v = now_called(graph.result(n, k));
      if (!v.valid()) continue;
      if (graph.producer(v).valid()) out.push_back(graph.producer(v));
      for (UseId u = graph.first_use(v); u.valid(); u = graph.next_use(u))
        out.push_back(graph.user(u));
    }
  }
}

std::uint32_t KeptPass::next_round() {
  if (seen_.size() < run_->graph.node_bound()) seen_.resize(run_->graph.node_bound(), 0);
  if (++round_ == 0) fail("too many rounds");
  return round_;
}

/// Those at the other end of an edge that some pattern has.
template <class Visit>
void KeptPass::for_each_neighbour(NodeId n, const Visit& visit) const {
  const Graph& graph = run_->graph;
  const OpId op = graph.op(n);
  const bool shares = edges_.shares(op);
  for (std::size_t k = 0; k < graph.operand_count(n); ++k) {
    const ValueId v = graph.operand(n, k);
    if (!v.valid()) continue;
    if (const NodeId p = graph.producer(v); p.valid() && edges_.reads(graph.op(p), op)) visit(p);
    if (!shares) continue;
    for (UseId u = graph.first_use(v); u.valid(); u = graph.next_use(u))
      if (edges_.share(op, graph.op(graph.user(u)))) visit(graph.user(u));
  }
  if (!edges_.is_read(op)) return;
  for (std::size_t k = 0; k < graph.result_count(n); ++k)
    for (UseId u = graph.first_use(graph.result(n, k)); u.valid(); u = graph.next_use(u))
      if (edges_.reads(op, graph.op(graph.user(u)))) visit(graph.user(u));
}

/// Undoes what was done later than `now` to these nodes, and to whatever a match with one of them
/// could hold. Whether it did. Where that has been seen to before, it still holds: the walk goes
/// forward, what is rewritten in it is not later than it, and edges that come with that are seen to
/// from their own nodes.
bool KeptPass::disturb(std::span<const NodeId> nodes, Time now) {
  const Graph& graph = run_->graph;
  const std::size_t undone = counters_.undone;
  if (now < covered_until_) ++cover_round_;
  covered_until_ = now;
  if (covers_.size() < graph.node_bound()) covers_.resize(graph.node_bound() + 1024);
  open_.clear();
  const auto visit = [&](NodeId n, std::uint32_t reach) {
    Cover& cover = covers_[n.index];
    if (cover.round == cover_round_ && cover.reach >= reach) return;
    cover = {cover_round_, reach};
    open_.emplace_back(n, reach);
  };
  const auto undo_all = [&](const std::vector<std::uint32_t>& heads, std::size_t index) {
    if (index >= heads.size()) return;
    for (std::uint32_t t = heads[index]; t != kNone && !broken_; t = touches_[t].next) {
      const Record& record = records_[touches_[t].record()];
      if (record.applied && record.time > now) undo(touches_[t].record());
    }
  };
  const auto whole = static_cast<std::uint32_t>(reach_ + 1);
  for (NodeId n : nodes)
    if (n.valid()) visit(n, whole);
  for (std::size_t i = 0; i < open_.size() && !broken_; ++i) {
    const auto [n, reach] = open_[i];
    undo_all(touch_head_, n.index);
    if (!graph.alive(n) || reach == 1) continue;
    if (edges_.shares(graph.op(n)))
      for (std::size_t k = 0; k < graph.operand_count(n); ++k)
        if (const ValueId v = graph.operand(n, k); v.valid()) undo_all(value_touch_head_, v.index);
    for_each_neighbour(n, [&, next = reach - 1](NodeId other) { visit(other, next); });
  }
  return counters_.undone != undone;
}

/// Other edges lead from these nodes than before: what was seen to along them is not any more.
void KeptPass::uncover(std::span<const NodeId> nodes) {
  const std::uint32_t round = next_round();
  open_.clear();
  const auto visit = [&](NodeId n, std::uint32_t reach) {
    if (seen_[n.index] == round) return;
    seen_[n.index] = round;
    if (n.index < covers_.size()) covers_[n.index] = {};
    open_.emplace_back(n, reach);
  };
  for (NodeId n : nodes) visit(n, static_cast<std::uint32_t>(reach_ + 1));
  for (std::size_t i = 0; i < open_.size(); ++i) {
    const auto [n, reach] = open_[i];
    if (!run_->graph.alive(n) || reach == 1) continue;
    for_each_neighbour(n, [&, next = reach - 1](NodeId other) { visit(other, next); });
  }
}

/// Matches again at all anchors of matches that may hold what was undone, and what stands around
/// where some match waited for another: it may be that one.
void KeptPass::ask_restored(std::span<const NodeId> nodes) {
  ask(waited_.empty() ? std::span<const NodeId>() : nodes);
}

/// Matches again at all anchors of matches that may hold one of these nodes, or what was undone.
void KeptPass::ask(std::span<const NodeId> nodes) {
  if (broken_) return;
  RuleEngine& engine = run_->engine;
  const Graph& graph = run_->graph;
  engine.touched_.clear();
  engine.erased_.clear();
  const std::uint32_t round = next_round();
  const auto touch = [&](NodeId n) {
    if (!n.valid() || seen_[n.index] == round || !graph.alive(n)) return;
    seen_[n.index] = round;
    engine.touched_.push_back(n);
  };
  for (NodeId n : nodes) touch(n);
  for (NodeId n : restored_) touch(n);
  restored_.clear();
  std::vector<NodeId> waiting;
  for (NodeId n : engine.touched_) {
    const auto [first, last] = waited_.equal_range(n.index);
    for (auto it = first; it != last; ++it) waiting.push_back(it->second);
  }
  engine.requeue();
  counters_.asked += engine.again_.size() + waiting.size();
  RuleEngine::sort_once(waiting);
  for (NodeId n : waiting)
    if (graph.alive(n)) engine.attempt(n);
}

// ---- edits

bool KeptPass::update(const Graph& before, const Graph& input) {
  if (broken_ || !run_) return false;
  if (!again_.empty()) {
    const std::string_view why = std::exchange(again_, {});
    run_->graph = input;
    if (!rewrite()) return false;
    why_ = why;
    return true;
  }
  why_.clear();
  counters_ = {};
  events_ = 0;
  most_events_ = 4096 + 8 * sequence_.size();
  now_ = covered_until_ = 0;
  cursor_ = 0;
  ++cover_round_;
  RuleEngine& engine = run_->engine;
  if (records_.size() > 2 * first_records_ + 4096)
    return fail("too much was edited since everything was rewritten"), false;
  const std::uint64_t version = run_->graph.renumberings();
  engine.pool_.clear();
  engine.waiters_.clear();
  deferred_.clear();
  engine.latest_.assign(engine.latest_.size(), RuleEngine::kNoEntry);
  engine.limit_ = 10'000 + run_->options.limits.per_node * input.node_count();
  engine.rewrites_ = 0;
  if (!edit(before, input)) return false;
  if (run_->graph.renumberings() != version) fail("the order list was relabelled");
  pump();
  if (!broken_ && !loose_ends_hold()) fail("nothing says where new nodes stand");
  return !broken_;
}

/// Brings the kept graph's input to the new one.
bool KeptPass::edit(const Graph& before, const Graph& input) {
  Graph& graph = run_->graph;
  const auto no = [&](std::string_view why) { return fail(why), false; };
  if (&input.context() != &graph.context()) return no("another context");
  if (input.inputs() != before.inputs() || input.written_inputs() != before.written_inputs() ||
      input.outputs().size() < before.outputs().size())
    return no("other inputs or outputs");
  if (!same_facts(input.facts, before.facts)) return no("other facts of the symbols");
  if (has_awaited_ops(input)) return no("an op is new for which rules had been left out");
  for (ValueId v : input.inputs())
    if (input.type(v) != before.type(v)) return no("an input has another type");
  std::vector<NodeId> changed, added, erased;
  std::vector<NodeId> near = std::move(changed_);  // of the kept graph
  changed_.clear();
  const auto here = [&](NodeId n) {
    const auto it = node_here_.find(n.index);
    if (it != node_here_.end()) return NodeId(std::size_t{it->second});
    return n.index < inputs_nodes_ ? n : NodeId();
  };
  const auto value_here = [&](ValueId v) {
    const auto it = v.valid() ? value_here_.find(v.index) : value_here_.end();
    if (it != value_here_.end()) return ValueId(std::size_t{it->second});
    return v.index < inputs_values_ ? v : ValueId();
  };
  // Both lists at once: what is in both stands in one order.
  NodeId old = before.first();
  const auto gone = [&](NodeId n) { return n.index >= input.node_bound() || !input.alive(n); };
  const auto skip = [&] {
    for (; old.valid() && gone(old); old = before.next(old)) erased.push_back(old);
  };
  const bool edited = &input != &before;
  for (NodeId n = input.first(); edited && n.valid(); n = input.next(n)) {
    if (n.index >= before.node_bound() || !before.alive(n)) {
      added.push_back(n);  // or brought back: with another id here, as if it were new
      continue;
    }
    skip();
    if (old != n) return no("nodes were moved");
    old = before.next(old);
    bool equal = input.op(n) == before.op(n) && input.attributes(n) == before.attributes(n) &&
                 input.operand_count(n) == before.operand_count(n);
    for (std::size_t k = 0; equal && k < input.operand_count(n); ++k)
      equal = input.operand(n, k) == before.operand(n, k);
    for (std::size_t k = 0; equal && k < input.result_count(n); ++k)
      equal = input.type(input.result(n, k)) == before.type(before.result(n, k));
    if (!equal) changed.push_back(n);
  }
  if (edited) skip();
  if (changed.size() + added.size() + erased.size() > kMostEdited) return no("too many edits");
  const auto near_value = [&](const Graph& of, ValueId v) {
    if (!v.valid() || of.is_input(v)) return;
    if (const NodeId n = here(of.producer(v)); n.valid()) near.push_back(n);
  };
  const auto near_node = [&](const Graph& of, NodeId n) {
    if (const NodeId there = here(n); there.valid()) near.push_back(there);
    for (std::size_t k = 0; k < of.operand_count(n); ++k) near_value(of, of.operand(n, k));
  };
  for (NodeId n : changed) {
    if (input.operand_count(n) != before.operand_count(n))
      return no("a node has another number of operands");
    near_node(before, n);
    near_node(input, n);
    for (std::size_t k = 0; k < input.result_count(n); ++k)
      if (input.type(input.result(n, k)) != before.type(before.result(n, k)))
        for (NodeId user : before.users(before.result(n, k)))
          if (here(user).valid()) near.push_back(here(user));
  }
  for (NodeId n : added) near_node(input, n);
  for (NodeId n : erased) near_node(before, n);
  for (std::size_t i = 0; i < input.outputs().size(); ++i) {
    if (i < before.outputs().size() && before.outputs()[i] == input.outputs()[i]) continue;
    if (i < before.outputs().size()) near_value(before, before.outputs()[i]);
    near_value(input, input.outputs()[i]);
  }
  disturb(near, 0);
  if (broken_) return false;

  for (NodeId n : added) {
    NodeId behind = input.previous(n);
    if (behind.valid()) behind = here(behind);
    std::vector<ValueId> operands;
    for (std::size_t k = 0; k < input.operand_count(n); ++k) {
      const ValueId v = input.operand(n, k);
      operands.push_back(v.valid() ? now_called(value_here(v)) : v);
      if (v.valid() && !operands.back().valid()) return no("an added node reads what comes later");
    }
    std::vector<TypeId> types;
    for (std::size_t k = 0; k < input.result_count(n); ++k)
      types.push_back(input.type(input.result(n, k)));
    graph.insert_before(
        order_.alive_from(graph, behind.valid() ? order_.next(behind) : order_.first()));
    const NodeId made = graph.add_node(input.op(n), operands, input.attributes(n), types, {});
    graph.insert_before({});
    maker_.resize(graph.node_bound(), kNone);
    eraser_.resize(graph.node_bound(), kNone);
    node_here_[n.index] = made.index;
    node_there_[made.index] = n.index;
    for (std::size_t k = 0; k < input.result_count(n); ++k)
      value_here_[input.result(n, k).index] = graph.result(made, k).index;
    put(made, behind);
    near.push_back(made);
  }
  for (NodeId n : changed) {
    const NodeId there = here(n);
    if (!graph.alive(there)) return no("an edited node is gone");
    if (graph.op(there) != input.op(n)) graph.set_op(there, input.op(n));
    if (graph.attributes(there) != input.attributes(n))
      graph.set_attributes(there, input.attributes(n));
    for (std::size_t k = 0; k < input.operand_count(n); ++k) {
      if (input.operand(n, k) == before.operand(n, k)) continue;
      const ValueId v = now_called(value_here(input.operand(n, k)));
      if (input.operand(n, k).valid() && !v.valid()) return no("an operand is gone");
      graph.set_operand(there, k, v);
    }
    for (std::size_t k = 0; k < input.result_count(n); ++k)
      if (graph.type(graph.result(there, k)) != input.type(input.result(n, k)))
        graph.set_type(graph.result(there, k), input.type(input.result(n, k)));
  }
  for (std::size_t i = 0; i < input.outputs().size(); ++i) {
    if (i < before.outputs().size() && before.outputs()[i] == input.outputs()[i]) continue;
    const ValueId v = now_called(value_here(input.outputs()[i]));
    if (!v.valid()) return no("an output is gone");
    i < before.outputs().size() ? graph.set_output(i, v) : graph.add_output(v);
  }
  for (auto n = erased.rbegin(); n != erased.rend(); ++n)
    if (!erase(here(*n))) return false;
  if (edited && has_barriers(input)) return no("ops with effects keep an order");
  std::vector<NodeId> all;
  around(near, all);
  disturb(all, 0);
  ask(all);
  return !broken_;
}

/// New nodes whose place no user says stand before the first node behind what they read that was
/// there at the time.
bool KeptPass::loose_ends_hold() const {
  for (std::uint32_t number : sequence_) {
    const Record& record = records_[number];
    if (record.first_user.valid() || record.made == 0) continue;
    NodeId n = record.behind.valid() ? order_.next(record.behind) : order_.first();
    for (; n.valid() && n.index != record.first_made; n = order_.next(n))
      if (stood_then(n, record.time)) return false;
  }
  return true;
}

// ---- replaying

bool KeptPass::replay(RunState& run, const Strategy& strategy, PassStats& stats,
                      std::vector<NodeId>& ids) const {
  RuleEngine engine(run, strategy, stats);
  engine.prepare();
  std::vector<NodeId> there(run_->graph.node_bound());
  std::copy_n(ids.begin(), std::min(inputs_nodes_, ids.size()), there.begin());
  for (const auto& [made, of] : node_there_) there[made] = ids[of];
  ids = std::move(there);
  for (std::uint32_t number : sequence_) {
    const Record& record = records_[number];
    engine.pool_.clear();
    std::uint32_t* words = engine.pool_.add(RuleEngine::kNodes + record.nodes);
    words[RuleEngine::kRule] = record.rule;
    words[RuleEngine::kSwaps] = record.swaps;
    std::size_t at = RuleEngine::kNodes;
    for (NodeId n : nodes_of(record)) words[at++] = (n.valid() ? ids[n.index] : NodeId()).index;
    RuleEngine::Entry entry;
    entry.rule = record.rule;
    if (!engine.rebind(entry)) return false;
    const Recipe& recipe = run_->engine.rules_[record.rule].verdicts->number(record.verdict).recipe;
    engine.replace(record.rule, engine.rules_[record.rule].taken, recipe, false);
    ++stats.rewrites;
    ++engine.rules_[record.rule].stats->matches;
    run.count_rewrite();
    for (std::uint32_t i = 0; i < record.made; ++i)
      ids[record.first_made + i] = NodeId(std::size_t{engine.first_new_.index + i});
  }
  return true;
}

}  // namespace pw
