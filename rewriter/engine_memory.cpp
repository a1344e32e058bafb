// Exports RuleEngine's memory: what it notes for the run after this one, and what it takes over
// from the run before. Described in run_memory.hpp.
//
// All rewrites are made anew by the engine itself: a match that is taken over is validated like any
// other when it is taken. Taking over must only never miss a match. So each node of the graph is
// paired with one of the old run, and those whose state differs are `changed`: at the start what
// correspond() says; later the states are compared that rewrites of either run left. A match
// without changed nodes stood in the old run, and was noted there; one with a changed node
// has its anchor at the end of a way back from that node, and these anchors are asked. The ways are
// followed again when a rewrite touches a node on one of them, since they may lead on from there.
#include <algorithm>

#include "base/hash.hpp"
#include "rewriter/engine.hpp"

namespace pw {
namespace {

constexpr std::uint32_t kNone = Correspondence::kNone;
constexpr std::uint8_t kOnWay = 1, kAnchor = 2;
constexpr std::size_t kStateHead = 6, kStateResult = 3;  ///< words of a state
/// Beyond so many a run that asks everything is as fast.
constexpr std::size_t kMostChanged = 512;
constexpr std::size_t kMostNear = 4096;

}  // namespace

struct RuleEngine::Memory {
  std::unique_ptr<PassMemory> now = std::make_unique<PassMemory>();
  std::size_t refused = 0;                    // of the run, when it began
  const PassMemory* old = nullptr;            // null: everything is asked
  std::vector<std::uint32_t> now_of, old_of;  // by old node; by new node
  std::vector<std::uint32_t> value_now;       // by old value
  std::vector<std::uint32_t> old_state;       // by old node: in states; kNone: as in `start`
  std::vector<char> old_dead;                 // by old node
  std::vector<char> differs;                  // by new node: it is among `changed`
  std::vector<NodeId> changed, near_nodes, compared;
  std::vector<std::uint8_t> near;             // by new node
  std::vector<std::uint32_t> rule_now;        // by old rule; kNone: its matches are asked for
  std::vector<std::uint32_t> fresh;           // rules to be asked everywhere
  std::optional<MatchProgram> program;        // of these
  std::unique_ptr<Registers> registers;       // of that
  std::vector<std::uint32_t> gone_in;         // by old node: the rewrite that replaced it
  std::size_t next_old = 0;                   // the first old rewrite that is not behind
  const PassMemory::Rewrite* same = nullptr;  // the old one that the present one repeats
  std::vector<NodeId> here, there;

  [[nodiscard]] NodeId now_node(NodeId n) const {
    return n.index < now_of.size() && now_of[n.index] != kNone
               ? NodeId(std::size_t{now_of[n.index]})
               : NodeId();
  }
  [[nodiscard]] bool is_near(NodeId n, std::uint8_t bits) const {
    return n.index < near.size() && (near[n.index] & bits) != 0;
  }
  [[nodiscard]] bool is_changed(NodeId n) const {
    return n.index < differs.size() && differs[n.index] != 0;
  }
  static void put(std::vector<std::uint32_t>& list, std::uint32_t at, std::uint32_t value) {
    if (list.size() <= at) list.resize(at + 1, kNone);
    list[at] = value;
  }
  void change(NodeId n) {
    if (differs.size() <= n.index) differs.resize(n.index + 1, 0);
    if (differs[n.index] != 0) return;
    differs[n.index] = 1;
    changed.push_back(n);
  }
  [[nodiscard]] bool same_value(std::uint32_t before, ValueId after) const {
    if (before == kNone || !after.valid()) return before == kNone && !after.valid();
    return before < value_now.size() && value_now[before] == after.index;
  }
  [[nodiscard]] bool same_state(const Graph& graph, NodeId n) const;
};

/// Whether a node is as the old run had it after the rewrites that are behind.
bool RuleEngine::Memory::same_state(const Graph& graph, NodeId n) const {
  const std::uint32_t before = n.index < old_of.size() ? old_of[n.index] : kNone;
  if (before == kNone || (before < old_dead.size() && old_dead[before] != 0)) return false;
  const std::uint32_t at = before < old_state.size() ? old_state[before] : kNone;
  if (at == kNone) {
    const Graph& start = *old->start;
    const NodeId b(std::size_t{before});
    if (start.operand_count(b) != graph.operand_count(n)) return false;
    for (std::size_t k = 0; k < graph.operand_count(n); ++k)
      if (!same_value(start.operand(b, k).index, graph.operand(n, k))) return false;
    for (std::size_t k = 0; k < graph.result_count(n); ++k)
      if (start.use_count(start.result(b, k)) != graph.use_count(graph.result(n, k)) ||
          start.output_count(start.result(b, k)) != graph.output_count(graph.result(n, k)) ||
          start.type(start.result(b, k)) != graph.type(graph.result(n, k)))
        return false;
    return start.op(b) == graph.op(n) && start.attributes(b) == graph.attributes(n);
  }
  const std::uint32_t* state = old->states.data() + at;
  const std::size_t operands = state[2], results = state[3];
  if (operands != graph.operand_count(n) || results != graph.result_count(n) ||
      state[4] != graph.op(n).index || state[5] != graph.attributes(n).index)
    return false;
  state += kStateHead;
  for (std::size_t k = 0; k < operands; ++k)
    if (!same_value(*state++, graph.operand(n, k))) return false;
  for (std::size_t k = 0; k < results; ++k) {
    if (*state++ != graph.use_count(graph.result(n, k))) return false;
    if (*state++ != graph.output_count(graph.result(n, k))) return false;
    if (*state++ != graph.type(graph.result(n, k)).index) return false;
  }
  return true;
}

RuleEngine::~RuleEngine() = default;

/// Notes only what depends on the matched nodes alone.
void RuleEngine::remember() {
  const bool first = !memory_ && rewrites_ == 0 && run_.memory != nullptr && !tried_memory_;
  tried_memory_ = true;
  memory_.reset();
  if (!first) return;
  const PassMemory* old = run_.memory->next(strategy_.label, graph_);
  const bool plain =
      strategy_.kind == ast::Strategy::Kind::greedy && !trace_ &&
      std::all_of(rules_.begin(), rules_.end(), [](const Prepared& rule) {
        return rule.lasting && !rule.lists && !rule.ast().frontier && rule.ast().nodes.size() <= 32;
      });
  memory_ = std::make_unique<Memory>();
  Memory& m = *memory_;
  m.now->label = strategy_.label;
  m.now->start = run_.memory->start();
  m.refused = run_.refused.size();
  if (!plain) {
    run_.memory->keep(std::move(m.now));  // not usable, and keeps its turn
    memory_.reset();
    return;
  }
  const std::uint64_t params = fingerprint(run_.rules, run_.params);
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const Rule& rule = rules_[i].ast();
    m.now->rules.push_back(
        {rule.name, combine(run_.memory->meaning_of(run_.rules, rules_[i].layout().id), params),
         program_.rules[i].anchor.index, static_cast<std::uint32_t>(rule.nodes.size())});
  }
  if (old == nullptr) return;
  const Correspondence& pairs = run_.memory->corresponding(*old);
  if (pairs.changed.size() > kMostChanged) return;
  m.old = old;
  m.now_of = pairs.now_of;
  m.old_of = pairs.old_of;
  m.value_now = pairs.value_now_of;
  const auto room = [](auto& list, const auto& like) { list.reserve(like.size() + 1024); };
  room(m.now->pool, old->pool);
  room(m.now->matches, old->matches);
  room(m.now->asked, old->asked);
  room(m.now->ids, old->ids);
  room(m.now->states, old->states);
  room(m.now->rewrites, old->rewrites);
  m.near.assign(graph_.node_bound(), 0);
  m.differs.assign(graph_.node_bound(), 0);
  for (NodeId n : pairs.changed) m.change(n);
  std::vector<char> known(rules_.size(), 0);
  for (const PassMemory::KnownRule& rule : old->rules) {
    const auto same = [&](const PassMemory::KnownRule& r) {
      return r.name == rule.name && r.meaning == rule.meaning && r.anchor == rule.anchor;
    };
    const auto it = std::find_if(m.now->rules.begin(), m.now->rules.end(), same);
    m.rule_now.push_back(
        it == m.now->rules.end() ? kNone : static_cast<std::uint32_t>(it - m.now->rules.begin()));
    if (m.rule_now.back() != kNone) known[m.rule_now.back()] = 1;
  }
  for (std::uint32_t i = 0; i < rules_.size(); ++i)
    if (known[i] == 0) m.fresh.push_back(i);
  if (!m.fresh.empty()) {
    std::vector<const RuleLayout*> layouts;
    for (std::uint32_t i : m.fresh) layouts.push_back(&rules_[i].layout());
    m.program = compile_program(run_.rules.set(), layouts, gather_statistics(graph_));
    // The same anchors as in the whole program, to which the ways back lead.
    for (std::size_t i = 0; i < m.fresh.size(); ++i)
      if (m.program->rules[i].anchor != program_.rules[m.fresh[i]].anchor) m.old = nullptr;
    m.registers = std::make_unique<Registers>(*m.program);
  }
  m.gone_in.assign(old->start->node_bound(), kNone);
  for (std::uint32_t r = 0; r < old->rewrites.size(); ++r) {
    const PassMemory::Rewrite& rewrite = old->rewrites[r];
    for (std::uint32_t i = 0; i < rewrite.erased; ++i) {
      const std::uint32_t node = old->ids[rewrite.first_erased + i].index;
      if (m.gone_in.size() <= node) m.gone_in.resize(node + 1, kNone);
      m.gone_in[node] = r;
    }
  }
}

/// Those that differ, and where ways back from them lead.
void RuleEngine::find_near() {
  Memory& m = *memory_;
  for (NodeId n : m.near_nodes) m.near[n.index] = 0;
  m.near_nodes.clear();
  std::erase_if(m.changed, [&](NodeId n) { return !graph_.alive(n); });
  for (NodeId n : m.changed) mark_ways(n);
  if (m.changed.size() > kMostChanged || m.near_nodes.size() > kMostNear) m.old = nullptr;
}

void RuleEngine::mark_ways(NodeId node) {
  Memory& m = *memory_;
  const auto mark = [&](NodeId n, std::uint8_t bits) {
    if (m.near.size() <= n.index) m.near.resize(graph_.node_bound(), 0);
    if (m.near[n.index] == 0) m.near_nodes.push_back(n);
    m.near[n.index] |= bits;
  };
  mark(node, kOnWay);
  for (const WayBack& way : program_.ways_of(graph_.op(node))) {
    m.here.assign(1, node);
    for (const WayBack::SearchStep& step : way.steps) {
      m.there.clear();
      for (NodeId n : m.here) leave(step, n, [&](NodeId to) { m.there.push_back(to); });
      sort_once(m.there);
      m.here.swap(m.there);
      for (NodeId n : m.here) mark(n, kOnWay);
      if (m.near_nodes.size() > kMostNear) return;
    }
    for (NodeId n : m.here) mark(n, kAnchor);
  }
}

bool RuleEngine::seed_from_memory() {
  if (!memory_ || memory_->old == nullptr) return false;
  Memory& m = *memory_;
  find_near();
  if (m.old == nullptr) return false;
  const PassMemory& old = *m.old;
  version_ = graph_.renumberings();
  seeding_ = true;
  for (std::uint32_t i = 0; i < old.seeds; ++i) {
    const NodeId anchor = m.now_node(NodeId(
        std::size_t{old.pool[old.matches[i].at + old.rules[old.matches[i].rule].node_count + 1]}));
    if (anchor.valid() && !m.is_near(anchor, kAnchor)) recall(old, old.matches[i]);
  }
  order_seeds();
  for (NodeId n : old.seeded_again)
    if (const NodeId now = m.now_node(n); now.valid() && graph_.alive(now)) {
      if (m.near[now.index] == 0) m.near_nodes.push_back(now);
      m.near[now.index] |= kAnchor;
    }
  if (m.program) {
    for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n))
      if (m.is_near(n, kAnchor))
        seed_and_note(n);
      else
        ask_fresh_rules(n);
  } else {
    std::vector<NodeId> anchors;
    for (NodeId n : m.near_nodes)
      if (m.is_near(n, kAnchor)) anchors.push_back(n);
    std::sort(anchors.begin(), anchors.end(),
              [&](NodeId a, NodeId b) { return graph_.label(a) < graph_.label(b); });
    for (NodeId n : anchors) seed_and_note(n);
  }
  note_seeds();
  return true;
}

/// All matches that are known before the first rewrite, in order.
void RuleEngine::note_seeds() {
  PassMemory& now = *memory_->now;
  now.matches.clear();
  now.pool.clear();
  std::vector<Entry> late = heap_;
  std::sort(late.begin(), late.end(), Later{this});
  std::size_t early = seeds_.size();
  while (early > 0 || !late.empty()) {
    const bool seed = late.empty() || (early > 0 && Later{this}(late.back(), seeds_[early - 1]));
    const Entry& entry = seed ? seeds_[--early] : late.back();
    note_match(entry.rule, entry.at);
    if (!seed) late.pop_back();
  }
  now.seeds = static_cast<std::uint32_t>(now.matches.size());
}

void RuleEngine::seed_and_note(NodeId anchor) {
  const std::uint64_t waits = waits_;
  attempt(anchor);
  ++run_.memory->asked;
  if (waits_ != waits) memory_->now->seeded_again.push_back(anchor);
}

/// Only rules that the old run did not have.
void RuleEngine::ask_fresh_rules(NodeId anchor) {
  Memory& m = *memory_;
  if (!m.program || m.program->entry_of(graph_.op(anchor)) == Instruction::kNowhere) return;
  const std::uint64_t waits = waits_;
  choice_count_ = 0;
  asked_.clear();
  StepBudget budget{steps_};
  NoTrace none;
  execute(*m.program, graph_, anchor, constant_, *m.registers, none, budget,
          [&](std::uint32_t index) {
            read_candidate(m.program->rules[index], *m.registers, found_);
            return accept_found(m.fresh[index], anchor);
          });
  if (budget.stopped) give_up(m.fresh[*budget.stopped], anchor);
  push_choices(anchor);
  ++run_.memory->asked;
  if (waits_ != waits && m.now->rewrites.empty()) m.now->seeded_again.push_back(anchor);
}

/// Takes over a match, unless it holds a node that differs.
bool RuleEngine::recall(const PassMemory& old, const PassMemory::KnownMatch& match) {
  Memory& m = *memory_;
  const std::uint32_t rule = m.rule_now[match.rule];
  if (rule == kNone) return false;
  const std::uint32_t count = old.rules[match.rule].node_count;
  Entry entry;
  entry.rule = rule;
  entry.at = static_cast<std::uint32_t>(pool_.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const NodeId before(std::size_t{old.pool[match.at + i]});
    const NodeId node = m.now_node(before);
    if (!node.valid() || m.is_changed(node) || !graph_.alive(node)) {
      pool_.resize(entry.at);
      return false;
    }
    pool_.push_back(node.index);
  }
  const NodeId anchor = m.now_node(NodeId(std::size_t{old.pool[match.at + count + 1]}));
  pool_.push_back(old.pool[match.at + count]);
  pool_.push_back(anchor.index);
  pool_.push_back(kNoVerdict);
  entry.position = ~std::uint64_t{0};
  for (PatternNodeId id : rules_[rule].layout().own)
    entry.position =
        std::min(entry.position, graph_.label(NodeId(std::size_t{pool_[entry.at + id.index]})));
  heap_.push_back(entry);
  if (!seeding_) std::push_heap(heap_.begin(), heap_.end(), Later{this});
  if (!seeding_) note_match(rule, entry.at);
  ++run_.memory->recalled;
  return true;
}

void RuleEngine::note_match(std::uint32_t rule, std::uint32_t at) {
  PassMemory& now = *memory_->now;
  now.matches.push_back({rule, static_cast<std::uint32_t>(now.pool.size())});
  const std::size_t count = now.rules[rule].node_count + 2;
  now.pool.insert(now.pool.end(), pool_.begin() + at,
                  pool_.begin() + at + static_cast<std::ptrdiff_t>(count));
}

/// The old run has made one more rewrite.
void RuleEngine::pass(const PassMemory::Rewrite& rewrite) {
  Memory& m = *memory_;
  for (std::uint32_t i = 0; i < rewrite.erased; ++i) {
    const NodeId before = m.old->ids[rewrite.first_erased + i];
    if (m.old_dead.size() <= before.index) m.old_dead.resize(before.index + 1, 0);
    m.old_dead[before.index] = 1;
    if (const NodeId n = m.now_node(before); n.valid()) m.compared.push_back(n);
  }
  std::uint32_t at = rewrite.first_state;
  for (std::uint32_t i = 0; i < rewrite.states; ++i) {
    const std::uint32_t* state = m.old->states.data() + at;
    Memory::put(m.old_state, state[0], at);
    if (const NodeId n = m.now_node(NodeId(std::size_t{state[0]})); n.valid())
      m.compared.push_back(n);
    at += static_cast<std::uint32_t>(kStateHead + state[2] + kStateResult * state[3]);
  }
}

void RuleEngine::note_state(NodeId node) {
  std::vector<std::uint32_t>& states = memory_->now->states;
  const std::size_t operands = graph_.operand_count(node), results = graph_.result_count(node);
  states.push_back(node.index);
  states.push_back(results > 0 ? graph_.result(node).index : kNone);
  states.push_back(static_cast<std::uint32_t>(operands));
  states.push_back(static_cast<std::uint32_t>(results));
  states.push_back(graph_.op(node).index);
  states.push_back(graph_.attributes(node).index);
  for (std::size_t k = 0; k < operands; ++k) states.push_back(graph_.operand(node, k).index);
  for (std::size_t k = 0; k < results; ++k) {
    states.push_back(static_cast<std::uint32_t>(graph_.use_count(graph_.result(node, k))));
    states.push_back(static_cast<std::uint32_t>(graph_.output_count(graph_.result(node, k))));
    states.push_back(graph_.type(graph_.result(node, k)).index);
  }
}

/// After a rewrite, before anything is asked again.
void RuleEngine::note_rewrite(std::uint32_t index) {
  PassMemory& now = *memory_->now;
  PassMemory::Rewrite mine;
  mine.rule = index;
  mine.nodes = static_cast<std::uint32_t>(now.pool.size());
  for (std::size_t i = 0; i < taken_.nodes.size(); ++i) {
    now.pool.push_back(taken_.nodes[i].index);
    if (taken_.swaps[i] != 0) mine.swaps |= 1u << i;
  }
  mine.first_erased = static_cast<std::uint32_t>(now.ids.size());
  mine.erased = static_cast<std::uint32_t>(erased_.size());
  now.ids.insert(now.ids.end(), erased_.begin(), erased_.end());
  // The new ones first, all of them: they are paired by their place.
  mine.first_state = static_cast<std::uint32_t>(now.states.size());
  for (NodeId n : created_) note_state(n);
  mine.new_count = static_cast<std::uint32_t>(created_.size());
  mine.states = mine.new_count;
  for (NodeId n : touched_)
    if (n.index < first_new_.index) note_state(n), ++mine.states;
  mine.first_asked = static_cast<std::uint32_t>(now.asked.size());
  now.rewrites.push_back(mine);
  if (memory_->old != nullptr) follow_old(index, mine);
}

/// Finds the rewrite of the old run that this one repeats, if there is one. What both made is
/// paired, so that graphs which come to agree again behind an edit are seen to agree.
void RuleEngine::follow_old(std::uint32_t index, const PassMemory::Rewrite& mine) {
  Memory& m = *memory_;
  const PassMemory& old = *m.old;
  bool moved = false;
  m.same = nullptr;
  m.compared.clear();
  const std::uint32_t before =
      own_.front().index < m.old_of.size() ? m.old_of[own_.front().index] : kNone;
  const std::uint32_t which =
      before != kNone && before < m.gone_in.size() ? m.gone_in[before] : kNone;
  if (which != kNone && which >= m.next_old && m.rule_now[old.rewrites[which].rule] == index &&
      old.rewrites[which].new_count == mine.new_count) {
    const PassMemory::Rewrite& theirs = old.rewrites[which];
    for (; m.next_old < which; ++m.next_old) pass(old.rewrites[m.next_old]);
    moved = compare_states();
    bool same = theirs.swaps == mine.swaps;
    for (std::size_t i = 0; same && i < taken_.nodes.size(); ++i)
      same = m.now_node(NodeId(std::size_t{old.pool[theirs.nodes + i]})) == taken_.nodes[i] &&
             !m.is_changed(taken_.nodes[i]);
    if (same) m.same = &theirs;
    pair_created(theirs, mine);
    pass(theirs);
    ++m.next_old;
  }
  m.compared.insert(m.compared.end(), touched_.begin(), touched_.end());
  m.compared.insert(m.compared.end(), created_.begin(), created_.end());
  moved = compare_states() || moved;
  const auto near = [&](NodeId n) { return m.is_near(n, kOnWay | kAnchor); };
  if (moved || std::any_of(touched_.begin(), touched_.end(), near) ||
      std::any_of(erased_.begin(), erased_.end(), near))
    find_near();
}

void RuleEngine::pair_created(const PassMemory::Rewrite& theirs, const PassMemory::Rewrite& mine) {
  Memory& m = *memory_;
  const std::uint32_t* a = m.old->states.data() + theirs.first_state;
  const std::uint32_t* b = m.now->states.data() + mine.first_state;
  for (std::uint32_t i = 0; i < mine.new_count; ++i) {
    if (a[3] == b[3]) {
      Memory::put(m.now_of, a[0], b[0]);
      Memory::put(m.old_of, b[0], a[0]);
      for (std::uint32_t k = 0; k < a[3]; ++k) Memory::put(m.value_now, a[1] + k, b[1] + k);
    }
    a += kStateHead + a[2] + kStateResult * a[3];
    b += kStateHead + b[2] + kStateResult * b[3];
  }
}

/// True if another set of nodes differs.
bool RuleEngine::compare_states() {
  Memory& m = *memory_;
  bool moved = false, left = false;
  for (NodeId n : m.compared) {
    if (!graph_.alive(n)) {  // what it was like is not known any more
      if (m.differs.size() <= n.index) m.differs.resize(n.index + 1, 0);
      m.differs[n.index] = 1;
      continue;
    }
    const bool differs = !m.same_state(graph_, n);
    if (differs == m.is_changed(n)) continue;
    moved = true;
    if (differs) {
      m.change(n);
    } else {
      m.differs[n.index] = 0;
      left = true;
    }
  }
  m.compared.clear();
  if (left) std::erase_if(m.changed, [&](NodeId n) { return m.differs[n.index] == 0; });
  return moved;
}

void RuleEngine::ask_or_recall(NodeId anchor) {
  Memory& m = *memory_;
  PassMemory& now = *m.now;
  PassMemory::Asked mine{anchor, static_cast<std::uint32_t>(now.matches.size()), 0, false};
  const std::uint64_t waits = waits_;
  const PassMemory::Asked* known = nullptr;
  if (m.old != nullptr && m.same != nullptr && !m.is_near(anchor, kAnchor)) {
    const auto begin = m.old->asked.begin() + m.same->first_asked;
    const auto it = std::find_if(begin, begin + m.same->asked, [&](const PassMemory::Asked& asked) {
      return m.now_node(asked.anchor) == anchor;
    });
    if (it != begin + m.same->asked && !it->again) known = &*it;
  }
  if (known == nullptr) {
    attempt(anchor);
    ++run_.memory->asked;
  } else {
    for (std::uint32_t i = 0; i < known->count; ++i)
      recall(*m.old, m.old->matches[known->first + i]);
    ask_fresh_rules(anchor);
  }
  mine.count = static_cast<std::uint32_t>(now.matches.size()) - mine.first;
  mine.again = waits_ != waits;
  now.asked.push_back(mine);
  ++now.rewrites.back().asked;
}

void RuleEngine::keep_memory() {
  Memory& m = *memory_;
  const bool warned = run_.refused.size() != m.refused;
  if (warned && m.old != nullptr) run_.memory->doubtful = true;
  m.now->usable = !warned;
  run_.memory->keep(std::move(m.now));
  memory_.reset();
}

}  // namespace pw
