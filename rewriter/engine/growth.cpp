// The growth phase of equality saturation: applies rules without removing anything, until no rule
// adds a form or a limit is reached.
//
// A round searches first and applies afterwards, one match of each rule in turn, so that a rule
// with very many matches leaves space for the others. A form that a rule builds and the graph holds
// already becomes the existing node (hash consing). The e-graph is closed under congruence once a
// round, after all applications (deferred rebuilding, as in egg). Only forms near a change are
// searched again: a pattern of k nodes reaches k - 1 steps, from node to node that share a value.
//
// Invariants: every new value has the type of the value it equals, so any form may replace another;
// an application that makes nothing new is not recorded; any prefix of the applications is sound.
// Cost: a round costs the matches near changes, and one or more passes over all forms to close the
// e-graph. Nodes, rounds and matches are bounded.
#include "rewriter/engine/growth.hpp"

#include <algorithm>

#include "rewriter/engine/known_types.hpp"
#include "rewriter/engine/right_side.hpp"

namespace pw {
namespace {

constexpr std::int64_t kNodes = 10'000, kRounds = 30;
constexpr std::size_t kMatchesPerNode =
    20;  // of the limit of nodes; also counts matches that add nothing
constexpr std::uint64_t kSearchSteps = 20'000;

/// Returns the nodes of a match of a rule without members, with gaps for nodes that must be absent.
std::vector<NodeId> by_pattern(const Rule& rule, const std::vector<NodeId>& matched) {
  std::vector<NodeId> out(rule.nodes.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < rule.nodes.size() && next < matched.size(); ++i)
    if (rule.nodes[PatternNodeId(i)].negation < 0) out[i] = matched[next++];
  return out;
}

}  // namespace

std::size_t Growth::Hash::operator()(const std::vector<std::uint32_t>& key) const {
  std::uint64_t hash = key.size();
  for (std::uint32_t word : key) hash = (hash ^ word) * 0xff51afd7ed558ccdU ^ (hash >> 29);
  return hash;
}

Growth::Growth(RunState& run, const Strategy& strategy)
    : run_(run),
      graph_(run.graph),
      equal_(run.graph),
      most_nodes_(static_cast<std::size_t>(strategy.nodes.value_or(
          std::max(kNodes, 16 * static_cast<std::int64_t>(run.graph.node_count()))))),
      most_matches_(kMatchesPerNode * most_nodes_),
      rounds_(static_cast<std::size_t>(strategy.rounds.value_or(kRounds))) {
  std::vector<RuleId> rules;
  open(strategy.rules, rules);
  sort_by_rank(run.rules, rules);
  for (RuleId id : rules) {
    const PreparedRule& prepared = run.prepare(id);
    Equation equation{
        prepared.layout, prepared.layout, prepared.base, anchor_of(*prepared.layout.rule), {}};
    equation.open.consumed.clear();
    equation.open.outputs.clear();
    equations_.push_back(std::move(equation));
    note_visible(run.rules[id]);
    const Rule& rule = run.rules[id];
    largest_ = std::max(largest_, rule.nodes.size() + rule.members.size());
  }
  // Groupings matter only if a pattern inspects the operands of the op.
  std::set<OpId> looked_into;
  for (const auto& [place, ops] : behind_) looked_into.insert(place.first);
  for (const auto& [op, slot] : shared_) looked_into.insert(op);
  reassociation_.emplace(graph_, equal_, looked_into, [this](OpId op, ValueId a, ValueId b) {
    return looks_at(op, a) || looks_at(op, b) || (equal_.same(a, b) && shared_.contains({op, 0}));
  });
  equal_.close();
}

/// Opens frontiers as deep as the present graph, or as greedy's run, requires.
void Growth::open(const std::vector<RuleId>& rules, std::vector<RuleId>& out) {
  for (RuleId id : rules) {
    if (!run_.rules[id].frontier)
      out.push_back(id);
    else if (run_.rules.variants(id) != nullptr ||
             frontier_fits(graph_, run_.rules, id, run_.params))
      open(std::vector<RuleId>(run_.rules.open(id, graph_.context_ptr())), out);
  }
}

GrowthStop Growth::grow() {
  equal_.close();
  for (round_ = 0; round_ < rounds_; ++round_) {
    const std::size_t before = applications.size(), forms = equal_.size();
    const Matches found = find_all();
    const bool room = apply_all(found);
    equal_.close();
    const bool regrouped = room && reassociation_->run(most_nodes_);
    if (regrouped) equal_.close();
    note_changes(before);
    if (matches_ >= most_matches_) return GrowthStop::matches;
    if (!room || full()) return GrowthStop::nodes;
    if (reassociation_->full() && applications.size() == before) return GrowthStop::nodes;
    if (!regrouped && applications.size() == before && equal_.size() == forms)
      return GrowthStop::complete;
  }
  const Matches rest = find_all();
  for (std::size_t i = 0; i < rest.size(); ++i)
    if (!rest[i].empty()) left[equations_[i].full.id] += rest[i].size();
  return left.empty() ? GrowthStop::complete : GrowthStop::rounds;
}

/// Records the operands that some pattern inspects: by op and slot, the ops of their producers.
void Growth::note_visible(const Rule& rule) {
  std::map<PatternValueId, int> readers;
  for (const PatternNode& node : rule.nodes)
    for (PatternValueId v : node.operands) ++readers[v];
  for (const PatternNode& node : rule.nodes) {
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const PatternValue& value = rule.values[node.operands[i]];
      const bool commutes = graph_.context().ops[node.op].traits.commutative && i < 2;
      for (std::size_t slot : commutes ? std::vector<std::size_t>{0, 1} : std::vector{i}) {
        if (value.producer.valid()) behind_[{node.op, slot}].insert(rule.nodes[value.producer].op);
        if (readers[node.operands[i]] >= 2 || value.literal) shared_.insert({node.op, slot});
      }
    }
  }
}

/// Returns true if some pattern tests the producer of an operand of this op, and an equal value has
/// such a producer; a number counts too.
/// such a producer; a number counts too.
bool Growth::looks_at(OpId op, ValueId operand) const {
  for (NodeId node : equal_.producers(operand)) {
    const OpId made_by = graph_.op(node);
    for (std::size_t slot = 0; slot < 2; ++slot) {
      const auto ops = behind_.find({op, slot});
      if (ops != behind_.end() && ops->second.contains(made_by)) return true;
      if (graph_.op_of(node).is_literal() && shared_.contains({op, slot})) return true;
    }
  }
  return false;
}

Growth::Matches Growth::find_all() {
  std::map<OpId, std::vector<NodeId>> by_op;
  for (NodeId n : everywhere_ ? equal_.forms() : anchors_near_changes())
    by_op[graph_.op(n)].push_back(n);
  everywhere_ = false;
  changed_.clear();
  Matches out(equations_.size());
  for (std::size_t i = 0; i < equations_.size(); ++i) {
    const Equation& equation = equations_[i];
    if (!equation.anchor.valid()) continue;
    const auto anchors = by_op.find(equation.full.rule->nodes[equation.anchor].op);
    if (anchors == by_op.end()) continue;
    Search search(graph_, equation.open, equation.base, false);
    search.match_equal(equal_, equation.made);
    search.limit_steps(kSearchSteps);
    for (NodeId n : anchors->second)
      search.run(n, [&](const Match& match) {
        std::vector<std::uint32_t> key{equation.full.id.index};
        for (NodeId node : all_nodes(match)) key.push_back(node.index);
        for (const auto& [name, bound] : match.env) {
          if (const auto* v = std::get_if<ValueId>(&bound)) key.push_back(v->index);
          if (const auto* list = std::get_if<std::vector<ValueId>>(&bound))
            for (ValueId v : *list) key.push_back(v.index);
        }
        if (seen_.insert(std::move(key)).second) {
          ++matches_;
          out[i].push_back(match);
        }
        return matches_ < most_matches_;
      });
  }
  return out;
}

/// Applies the matches round-robin. Returns false when the graph is full; the remaining matches are
/// counted.
bool Growth::apply_all(const Matches& found) {
  std::size_t most = 0;
  for (const std::vector<Match>& own : found) most = std::max(most, own.size());
  for (std::size_t k = 0; k < most; ++k)
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (k >= found[i].size()) continue;
      if (full())
        ++left[equations_[i].full.id];
      else
        apply(equations_[i], found[i][k], nullptr);
    }
  return !full();
}

std::vector<NodeId> Growth::repeat(RuleId rule, const std::vector<NodeId>& matched) {
  const auto equation = std::find_if(equations_.begin(), equations_.end(),
                                     [&](const Equation& e) { return e.full.id == rule; });
  if (equation == equations_.end()) return {};
  const Rule& known = *equation->full.rule;
  Search search(graph_, equation->open, equation->base, false);
  search.match_equal(equal_, equation->made);
  std::optional<Match> found;
  const auto take = [&](const Match& match) {
    if (all_nodes(match) != matched) return true;
    found = match;
    return false;
  };
  if (known.members.empty()) {
    search.run_fixed(by_pattern(known, matched), take);
  } else {
    for (NodeId anchor : matched)
      if (!found) search.run(anchor, take);
  }
  std::vector<NodeId> made;
  if (found) apply(*equation, *found, &made);
  return made;
}

/// Applies one match; returns true if something is new or newly equal. A right side that cannot be
/// built, or that has other types, makes nothing equal.
bool Growth::apply(Equation& equation, const Match& match, std::vector<NodeId>* made) {
  const Rule& rule = *equation.full.rule;
  const Graph::Checkpoint before = graph_.checkpoint();
  const NodeId first_new(graph_.node_bound());
  const std::vector<NodeId> matched = all_nodes(match);
  BuildOptions options;
  options.group = graph_.group(matched.front());
  options.source = graph_.source(matched.front());
  Env env = match.env;
  graph_.insert_before({});
  const auto built = build_right_side(graph_, rule, match, env, std::move(options));
  if (!built) run_.warn_refused(rule, graph_, matched.front(), built.error());
  const auto outputs = built ? outputs_of(graph_, equation.full, match, env)
                             : Result<std::vector<OutputPair>>(std::vector<OutputPair>());
  const auto fits = [&](const OutputPair& o) {
    return graph_.type(o.from) == graph_.type(o.to) &&
           (graph_.type(o.from) != Types::unknown() ||
            surely_same_type(graph_, o.from, graph_, o.to));
  };
  if (!built || !outputs || !std::all_of(outputs->begin(), outputs->end(), fits)) {
    graph_.rollback(before);
    return false;
  }
  EqualApplication done{equation.full.id, matched, {}, {}, {}};
  std::map<ValueId, ValueId> instead;
  const std::vector<NodeId> all = settle(first_new, instead);
  if (made != nullptr) *made = all;
  std::copy_if(all.begin(), all.end(), std::back_inserter(done.created),
               [&](NodeId n) { return n >= first_new; });
  if (!rule.members.empty()) equation.made.insert(done.created.begin(), done.created.end());
  bool news = !done.created.empty();
  for (const auto& [name, from, to] : *outputs) {
    const auto other = instead.find(to);
    news = equal_.merge(from, other == instead.end() ? to : other->second) || news;
    done.replaced.push_back(from);
  }
  if (!news) return false;
  done.bindings = bindings_of(rule, match);
  applications.push_back(std::move(done));
  conditions.insert(conditions.end(), match.conditions.begin(), match.conditions.end());
  return true;
}

/// Replaces each node from `first_new` on that repeats a known form by the node of that form.
/// Returns the resulting nodes; `instead` maps the erased values to the known ones.
std::vector<NodeId> Growth::settle(NodeId first_new, std::map<ValueId, ValueId>& instead) {
  std::vector<NodeId> out;
  for (std::size_t i = first_new.index; i < graph_.node_bound(); ++i) {
    const NodeId n(i);
    if (!graph_.alive(n)) continue;
    const std::optional<NodeId> known = equal_.known(n);
    out.push_back(known.value_or(n));
    if (!known) {
      equal_.add(n);
      continue;
    }
    for (std::size_t r = 0; r < graph_.result_count(n); ++r) {
      instead.emplace(graph_.result(n, r), graph_.result(*known, r));
      graph_.replace_uses(graph_.result(n, r), graph_.result(*known, r));
    }
    graph_.erase(n);
  }
  return out;
}

void Growth::note_changes(std::size_t first_application) {
  for (std::size_t i = first_application; i < applications.size(); ++i) {
    const EqualApplication& done = applications[i];
    changed_.insert(changed_.end(), done.created.begin(), done.created.end());
  }
  for (ValueId v : equal_.take_merged()) {
    const std::vector<NodeId> makers = equal_.producers(v);
    changed_.insert(changed_.end(), makers.begin(), makers.end());
    for (ValueId member : equal_.members(v))
      for (UseId u = graph_.first_use(member); u.valid(); u = graph_.next_use(u))
        changed_.push_back(graph_.user(u));
  }
}

/// Returns all forms within a pattern's reach of a changed node, in order.
std::vector<NodeId> Growth::anchors_near_changes() const {
  std::vector<bool> seen(graph_.node_bound(), false), through(graph_.value_bound(), false);
  std::vector<NodeId> ring;
  const auto reach = [&](NodeId n) {
    if (!graph_.alive(n) || seen[n.index]) return;
    seen[n.index] = true;
    ring.push_back(n);
  };
  const auto reach_all = [&](ValueId v) {
    if (!v.valid() || through[equal_.find(v).index]) return;
    through[equal_.find(v).index] = true;
    for (ValueId member : equal_.members(v)) {
      if (!graph_.is_input(member)) reach(graph_.producer(member));
      for (UseId u = graph_.first_use(member); u.valid(); u = graph_.next_use(u))
        reach(graph_.user(u));
    }
  };
  for (NodeId n : changed_) reach(n);
  for (std::size_t hop = 1; hop < largest_; ++hop) {
    const std::vector<NodeId> last = std::exchange(ring, {});
    for (NodeId n : last) {
      for (std::size_t i = 0; i < graph_.operand_count(n); ++i) reach_all(graph_.operand(n, i));
      for (std::size_t i = 0; i < graph_.result_count(n); ++i) reach_all(graph_.result(n, i));
    }
  }
  std::vector<NodeId> out;
  for (NodeId n : equal_.forms())
    if (seen[n.index]) out.push_back(n);
  return out;
}

}  // namespace pw
