// Exports run_saturation. Equality saturation (Tate et al. 2009; egg, Willsey et al. 2021) on the
// graph itself: it holds all forms, new ones are added at its end, where every value may be read,
// and EGraph says which values are equal.
//
// Each round applies every rule to all matches not seen before, merges what they make equal, drops
// duplicate nodes, closes under congruence, and regroups chains of associative ops. There is no
// e-matching: the matcher sees nodes with their operands as written. So a node that reads a value
// with equals is written again with those (write_equals), where a pattern looks through the operand
// at the op that made it, and for as many levels as the deepest pattern has.
//
// It ends when a round adds nothing, after K rounds, or at N nodes; any prefix is sound. Extraction
// picks the cheapest form of each value that is needed (extraction.cpp). If the result is not
// cheaper, everything is rolled back.
#include "rewriter/saturation.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "graph/text.hpp"
#include "rewriter/cost.hpp"
#include "rewriter/extraction.hpp"
#include "rewriter/reassociate.hpp"
#include "rewriter/search.hpp"

namespace pw {
namespace {

constexpr std::int64_t kNodes = 10'000, kRounds = 30;

/// One rule as it is matched here: nothing is consumed, so that neither users nor paths block it.
struct Equation {
  RuleLayout full, open;
  Env base;
};

struct Application {
  RuleId rule;
  std::vector<NodeId> matched, created;
  std::vector<std::pair<std::string, ValueId>> bindings;
  std::vector<ValueId> replaced;
};

class Saturation {
 public:
  Saturation(RunState& run, const Strategy& strategy)
      : run_(run),
        graph_(run.graph),
        equal_(run.graph),
        most_nodes_(static_cast<std::size_t>(strategy.nodes.value_or(kNodes))),
        rounds_(strategy.rounds.value_or(kRounds)) {
    for (RuleId id : strategy.rules) {
      const PreparedRule& prepared = run.prepare(id);
      Equation equation{prepared.layout, prepared.layout, prepared.base};
      equation.open.consumed.clear();
      equation.open.outputs.clear();
      equations_.push_back(std::move(equation));
      note_visible(run.rules[id]);
    }
    // Only where a pattern looks at what is combined does it matter how.
    std::set<OpId> looked_into;
    for (const auto& [place, ops] : behind_) looked_into.insert(place.first);
    for (const auto& [op, slot] : shared_) looked_into.insert(op);
    reassociation_.emplace(graph_, equal_, looked_into, [this](OpId op, ValueId a, ValueId b) {
      return looks_at(op, a) || looks_at(op, b) ||
             (equal_.find(a) == equal_.find(b) && shared_.contains({op, 0}));
    });
  }

  StopReason grow() {
    equal_.close();
    for (std::int64_t round = 0; round < rounds_; ++round) {
      const std::size_t before = applications.size();
      const std::size_t nodes = graph_.node_count();
      if (!apply_all()) return StopReason::fuel;
      drop_duplicates();
      equal_.close();
      const bool regrouped = reassociation_->run(most_nodes_);
      if (regrouped) equal_.close();
      if (!write_equals()) return StopReason::fuel;
      equal_.close();
      if (!regrouped && applications.size() == before && graph_.node_count() == nodes)
        return full() ? StopReason::fuel : StopReason::fixpoint;
    }
    return StopReason::fuel;
  }

  [[nodiscard]] const EGraph& equal() const { return equal_; }
  std::vector<Application> applications;
  std::vector<Condition> conditions;  ///< of all applications: any may stand behind what is equal

 private:
  [[nodiscard]] bool full() const { return graph_.node_count() >= most_nodes_; }

  /// Which operands some pattern sees through: by op and slot, the ops of the nodes behind.
  void note_visible(const Rule& rule) {
    std::map<PatternNodeId, int> depth;
    for (std::size_t i = 0; i < rule.nodes.size(); ++i) {
      int& own = depth[PatternNodeId(i)];
      for (PatternValueId v : rule.nodes[PatternNodeId(i)].operands)
        if (rule.values[v].producer.valid())
          own = std::max(own, depth[rule.values[v].producer] + 1);
      deepest_ = std::max(deepest_, own);
    }
    std::map<PatternValueId, int> readers;
    for (const PatternNode& node : rule.nodes)
      for (PatternValueId v : node.operands) ++readers[v];
    for (const PatternNode& node : rule.nodes) {
      for (std::size_t i = 0; i < node.operands.size(); ++i) {
        const PatternValue& value = rule.values[node.operands[i]];
        const bool commutes = graph_.context().ops[node.op].traits.commutative && i < 2;
        for (std::size_t slot : commutes ? std::vector<std::size_t>{0, 1} : std::vector{i}) {
          if (value.producer.valid())
            behind_[{node.op, slot}].insert(rule.nodes[value.producer].op);
          if (readers[node.operands[i]] < 2 && !value.literal) continue;
          shared_.insert({node.op, slot});
          deepest_ = std::max(deepest_, 1);
        }
      }
    }
  }

  [[nodiscard]] bool visible(NodeId user, std::size_t slot, ValueId member) const {
    const std::pair<OpId, std::size_t> place{graph_.op(user), slot};
    if (shared_.contains(place)) return true;
    const auto ops = behind_.find(place);
    return ops != behind_.end() && !graph_.is_input(member) &&
           ops->second.contains(graph_.op(graph_.producer(member)));
  }

  /// Whether some pattern tests the producer of an operand of this op, and a value equal to it has
  /// such a producer; a number counts too.
  [[nodiscard]] bool looks_at(OpId op, ValueId operand) const {
    const OpId number = graph_.context().ops.find("constant");
    for (ValueId member : equal_.members(operand)) {
      if (graph_.is_input(member)) continue;
      const OpId made_by = graph_.op(graph_.producer(member));
      for (std::size_t slot = 0; slot < 2; ++slot) {
        const auto ops = behind_.find({op, slot});
        if (ops != behind_.end() && ops->second.contains(made_by)) return true;
        if (made_by == number && shared_.contains({op, slot})) return true;
      }
    }
    return false;
  }

  /// False when the graph is full.
  bool apply_all() {
    std::vector<std::pair<const Equation*, Match>> found;
    for (const Equation& equation : equations_) {
      Search search(graph_, equation.open, equation.base, false);
      const PatternNodeId anchor = anchor_of(*equation.full.rule);
      for (NodeId n = graph_.first(); anchor.valid() && n.valid(); n = graph_.next(n)) {
        if (graph_.op(n) != equation.full.rule->nodes[anchor].op) continue;
        search.run(n, [&](const Match& match) {
          if (seen_.insert(key_of(equation, match)).second) found.emplace_back(&equation, match);
          return found.size() < most_nodes_;
        });
      }
    }
    for (const auto& [equation, match] : found) {
      if (full()) return false;
      apply(*equation, match);
    }
    return true;
  }

  static std::vector<std::uint32_t> key_of(const Equation& equation, const Match& match) {
    std::vector<std::uint32_t> key{equation.full.id.index};
    for (NodeId n : match.nodes) key.push_back(n.index);
    for (const auto& [name, bound] : match.env)
      if (const auto* v = std::get_if<ValueId>(&bound)) key.push_back(v->index);
    return key;
  }

  /// Of equal values the one that was there first, so that what is built twice is the same.
  [[nodiscard]] ValueId first_of(ValueId v) const {
    for (ValueId member : equal_.members(v))
      if (exists(member)) return member;
    return v;
  }

  /// A right side that cannot be built, or has other types, makes nothing equal.
  void apply(const Equation& equation, const Match& match) {
    const Rule& rule = *equation.full.rule;
    const Graph::Checkpoint before = graph_.checkpoint();
    const NodeId first_new(graph_.node_bound());
    BuildOptions options;
    options.group = graph_.group(match.nodes.front());
    options.source = graph_.source(match.nodes.front());
    for (NodeId n : match.nodes)
      options.open_attributes.emplace(graph_.op_of(n).name, graph_.attributes(n));
    Env env = match.env;
    for (auto& [name, bound] : env)
      if (auto* v = std::get_if<ValueId>(&bound); v != nullptr && v->valid()) *v = first_of(*v);
    graph_.insert_before({});
    auto built = build_statements(graph_, rule.replacement, env, options);
    std::vector<std::pair<ValueId, ValueId>> pairs;
    for (std::size_t i = 0; built && i < rule.outputs.size(); ++i) {
      const PatternValue& value = rule.values[equation.full.outputs[i]];
      const ValueId from =
          graph_.result(match.nodes[value.producer.index], static_cast<std::size_t>(value.result));
      const auto bound = env.find(rule.outputs[i]);
      const auto* to = bound == env.end() ? nullptr : std::get_if<ValueId>(&bound->second);
      if (to == nullptr || !to->valid() || graph_.type(*to) != graph_.type(from)) break;
      pairs.emplace_back(from, *to);
    }
    if (!built) run_.warn_refused(rule, graph_, match.nodes.front(), built.error());
    if (!built || pairs.size() != rule.outputs.size()) return graph_.rollback(before);
    Application done{equation.full.id, match.nodes, {}, {}, {}};
    for (const auto& [from, to] : pairs) {
      equal_.merge(from, to);
      done.replaced.push_back(from);
    }
    for (std::size_t i = first_new.index; i < graph_.node_bound(); ++i)
      done.created.push_back(NodeId(i));
    for (const PatternValue& value : rule.values) {
      const auto bound = match.env.find(value.name);
      if (value.name.empty() || value.name == "_" || bound == match.env.end()) continue;
      if (const auto* v = std::get_if<ValueId>(&bound->second))
        done.bindings.emplace_back(value.name, *v);
    }
    applications.push_back(std::move(done));
    conditions.insert(conditions.end(), match.conditions.begin(), match.conditions.end());
  }

  /// What is written twice with the very same operands would be matched twice, for ever.
  void drop_duplicates() {
    std::map<std::tuple<OpId, AttributesId, std::vector<ValueId>, std::vector<TypeId>>, NodeId>
        known;
    for (NodeId n : graph_.order()) {
      std::vector<TypeId> types;
      for (std::size_t i = 0; i < graph_.result_count(n); ++i)
        types.push_back(graph_.type(graph_.result(n, i)));
      const auto [first, fresh] = known.emplace(
          std::tuple(graph_.op(n), graph_.attributes(n), graph_.operands(n), types), n);
      if (fresh) continue;
      for (std::size_t i = 0; i < graph_.result_count(n); ++i) {
        equal_.merge(graph_.result(first->second, i), graph_.result(n, i));
        graph_.replace_uses(graph_.result(n, i), graph_.result(first->second, i));
      }
      graph_.erase(n);
    }
  }

  [[nodiscard]] bool exists(ValueId v) const {
    return graph_.is_input(v) || graph_.alive(graph_.producer(v));
  }

  /// False when the graph is full.
  bool write_equals() {
    for (NodeId n : graph_.order()) {
      for (std::size_t slot = 0; slot < graph_.operand_count(n); ++slot) {
        const ValueId operand = graph_.operand(n, slot);
        if (!operand.valid()) continue;
        for (ValueId member : equal_.members(operand)) {
          if (member == operand || !exists(member) || !visible(n, slot, member)) continue;
          if (full()) return false;
          write_again(n, slot, member);
        }
      }
    }
    return true;
  }

  [[nodiscard]] int depth_of(NodeId n) const {
    const auto found = depth_.find(n);
    return found == depth_.end() ? 0 : found->second;
  }

  void write_again(NodeId n, std::size_t slot, ValueId member) {
    NodeSpec spec;
    spec.op = graph_.op(n);
    spec.attributes = graph_.attributes(n);
    spec.operands = graph_.operands(n);
    spec.operands[slot] = member;
    int depth = 1;
    for (ValueId v : spec.operands)
      if (v.valid() && !graph_.is_input(v))
        depth = std::max(depth, depth_of(graph_.producer(v)) + 1);
    if (depth > deepest_ || !written_.insert({spec.op, spec.attributes, spec.operands}).second)
      return;
    for (std::size_t i = 0; i < graph_.result_count(n); ++i)
      spec.results.push_back({graph_.type(graph_.result(n, i)), ""});
    spec.group = graph_.group(n);
    spec.source = graph_.source(n);
    graph_.insert_before({});
    const NodeId copy = graph_.add_node(spec);
    depth_[copy] = depth;
    for (std::size_t i = 0; i < graph_.result_count(n); ++i)
      equal_.merge(graph_.result(n, i), graph_.result(copy, i));
  }

  RunState& run_;
  Graph& graph_;
  EGraph equal_;
  std::size_t most_nodes_;
  std::int64_t rounds_;
  std::vector<Equation> equations_;
  std::optional<Reassociation> reassociation_;
  std::map<std::pair<OpId, std::size_t>, std::set<OpId>> behind_;
  std::set<std::pair<OpId, std::size_t>> shared_;
  int deepest_ = 0;              // nodes above others in some pattern
  std::map<NodeId, int> depth_;  // of nodes written again: how many above each other
  std::set<std::vector<std::uint32_t>> seen_;
  std::set<std::tuple<OpId, AttributesId, std::vector<ValueId>>> written_;
};

/// Replaces the graph by the extracted one; returns the erased nodes.
std::vector<NodeId> install(Graph& graph, const EGraph& equal, const Extraction& best) {
  const auto chosen = [&](ValueId v) { return best.chosen.at(equal.find(v)); };
  std::vector<std::pair<std::size_t, std::string>> names;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i)
    names.emplace_back(i, graph.value_name(graph.outputs()[i]));
  for (NodeId n : best.nodes) graph.move_before(n, {});
  for (NodeId n : best.nodes)
    for (std::size_t i = 0; i < graph.operand_count(n); ++i)
      if (graph.operand(n, i).valid() && graph.operand(n, i) != chosen(graph.operand(n, i)))
        graph.set_operand(n, i, chosen(graph.operand(n, i)));
  for (std::size_t i = 0; i < graph.outputs().size(); ++i)
    graph.set_output(i, chosen(graph.outputs()[i]));
  const std::set<NodeId> kept(best.nodes.begin(), best.nodes.end());
  std::vector<NodeId> gone;
  for (bool again = true; again;) {
    again = false;
    for (NodeId n = graph.last(); n.valid();) {
      const NodeId before = graph.previous(n);
      bool unused = !kept.contains(n);
      for (std::size_t i = 0; unused && i < graph.result_count(n); ++i)
        unused = graph.unused(graph.result(n, i));
      if (unused) {
        graph.erase(n);
        gone.push_back(n);
        again = true;
      }
      n = before;
    }
  }
  for (const auto& [i, name] : names) {
    const ValueId v = graph.outputs()[i];
    if (!graph.is_input(v) && graph.value_name(v) != name) graph.rename(v, name);
  }
  return gone;
}

/// Whether the result has nodes that the application made; or, where it made none, whether what it
/// made equal is in the result as something else.
bool is_part_of(const Graph& graph, const EGraph& equal, const Extraction& best,
                const std::set<NodeId>& kept, const Application& done) {
  if (!done.created.empty())
    return std::any_of(done.created.begin(), done.created.end(),
                       [&](NodeId n) { return kept.contains(n); });
  return std::any_of(done.replaced.begin(), done.replaced.end(), [&](ValueId v) {
    return best.chosen.contains(equal.find(v)) && !kept.contains(graph.producer(v));
  });
}

/// The key of an application up to equal values: each is reported once.
std::vector<std::uint32_t> forms_of(const Graph& graph, const EGraph& equal,
                                    const Application& done) {
  std::vector<std::uint32_t> key{done.rule.index};
  for (NodeId n : done.matched) {
    key.insert(key.end(), {graph.op(n).index, graph.attributes(n).index});
    for (ValueId v : graph.operands(n))
      key.push_back(v.valid() ? equal.find(v).index : ValueId::kNone);
  }
  return key;
}

}  // namespace

Result<StopReason> run_saturation(RunState& run, const Strategy& strategy, PassStats& stats) {
  Graph& graph = run.graph;
  if (run.barriers)
    return fail(strategy.span, "PW1112", "a graph with effects cannot be saturated",
                "ops that write to their operands have one place; use `greedy`");
  const Cost kind = cost_named(strategy.cost).value_or(Cost::nodes);
  graph.start_undo();
  const Graph::Checkpoint before = graph.checkpoint();
  const std::int64_t cost = cost_of(graph, kind);
  const std::size_t count = graph.node_count();
  const std::size_t bound = graph.node_bound();
  Saturation saturation(run, strategy);
  const StopReason stop = saturation.grow();
  const SymbolSizes sizes = representative_sizes(graph.facts);
  const auto best =
      extract(graph, saturation.equal(), [&](NodeId n) { return cost_of(graph, n, kind, sizes); });
  if (!best || std::pair(best->cost, best->nodes.size()) >= std::pair(cost, count)) {
    graph.rollback(before);
    return stop;
  }
  for (const Condition& condition : saturation.conditions) run.note_condition(condition);
  const std::set<NodeId> kept(best->nodes.begin(), best->nodes.end());
  BuiltinEvent gone{"saturate", {}};
  for (NodeId n : install(graph, saturation.equal(), *best))
    if (n.index < bound) gone.erased.push_back(n);
  std::set<std::vector<std::uint32_t>> told;
  for (Application& done : saturation.applications) {
    if (!is_part_of(graph, saturation.equal(), *best, kept, done)) continue;
    if (!told.insert(forms_of(graph, saturation.equal(), done)).second) continue;
    MatchEvent event{done.rule, std::move(done.matched), std::move(done.bindings), {}, {}};
    std::copy_if(done.created.begin(), done.created.end(), std::back_inserter(event.created),
                 [&](NodeId n) { return kept.contains(n); });
    run.report.journal.add(event);
    ++stats.rewrites;
    ++stats.rules[run.rules[event.rule].name].matches;
    run.count_rewrite();
  }
  run.report.journal.add(gone);
  return stop;
}

}  // namespace pw
