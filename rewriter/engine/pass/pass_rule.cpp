// Derives everything about the rules of a pass that does not depend on a match, once for each
// compilation: slots for rebind(), ends for the gates, and which rules may block which.
//
// A rule blocks another if it is declared over it, or if its match may contain the other's match.
// The second relation is decided by counting ops, as multiset inclusion of own nodes. Only rules
// that share the rarest op of the inner rule are compared. The relation may be too large, never too
// small: the matches themselves are compared when one is dequeued (blockers.cpp).
//
// Two properties remove work from the inner loop:
//
//   * always_convex: every own node reaches every output and all operands of the right side are
//     operands of own nodes, so a bad path would close a cycle in the old graph already;
//   * memo, without numbers: if verdicts of all rules depend on nodes, types and uses alone, a
//     rewrite touches few nodes (replacer.cpp).
#include "rewriter/engine/pass/pass_rule.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace pw {
namespace {

/// Returns true if an expression depends on more than types and attributes.
bool looks_around(const Expr& expr) {
  if (expr.kind == Expr::Kind::call &&
      (expr.text == "replicated" || expr.text == "constant" || expr.text == "users"))
    return true;
  return std::any_of(expr.args.begin(), expr.args.end(), looks_around);
}

/// Number of own nodes of a rule by op.
struct OpCounts {
  std::vector<std::pair<std::uint32_t, std::size_t>> ops;
  std::size_t total = 0;
};

OpCounts own_ops(const Rule& rule) {
  std::map<std::uint32_t, std::size_t> counts;
  OpCounts out;
  for (const PatternNode& node : rule.nodes)
    if (node.own()) ++counts[node.op.index], ++out.total;
  out.ops.assign(counts.begin(), counts.end());
  return out;
}

/// Returns true if a match with the ops of one rule may contain a match of another rule and more
/// nodes.
bool may_nest(const OpCounts& outer, const OpCounts& inner, bool lists) {
  if (!lists && outer.total <= inner.total) return false;
  auto there = outer.ops.begin();
  for (const auto& [op, count] : inner.ops) {
    while (there != outer.ops.end() && there->first < op) ++there;
    if (there == outer.ops.end() || there->first != op || (!lists && there->second < count))
      return false;
  }
  return true;
}

/// Candidate pairs of rules for containment of matches, judged by their ops. Only larger rules with
/// the rarest op of the inner one are compared, and rules with lists, so that many rules of
/// different ops cost little.
class Nesting {
 public:
  Nesting(std::vector<OpCounts> rules, const std::vector<bool>& lists) : rules_(std::move(rules)) {
    for (std::uint32_t i = 0; i < rules_.size(); ++i) {
      all_.push_back(i);
      for (const auto& [op, count] : rules_[i].ops) with_[op].push_back(i);
    }
    any_lists_ = std::find(lists.begin(), lists.end(), true) != lists.end();
    if (any_lists_) return;
    const auto larger = [&](std::uint32_t a, std::uint32_t b) {
      return rules_[a].total != rules_[b].total ? rules_[a].total > rules_[b].total : a < b;
    };
    std::sort(all_.begin(), all_.end(), larger);
    for (auto& [op, ids] : with_) std::sort(ids.begin(), ids.end(), larger);
  }
  template <class Ask>
  void for_each_around(std::uint32_t inner, const Ask& ask) const {
    const std::vector<std::uint32_t>* fewest = &all_;
    for (const auto& [op, count] : rules_[inner].ops)
      if (with_.at(op).size() < fewest->size()) fewest = &with_.at(op);
    for (std::uint32_t outer : *fewest) {
      if (!any_lists_ && rules_[outer].total <= rules_[inner].total) return;
      ask(outer);
    }
  }
  [[nodiscard]] bool may_hold(std::uint32_t outer, std::uint32_t inner, bool lists) const {
    return may_nest(rules_[outer], rules_[inner], lists);
  }

 private:
  std::vector<OpCounts> rules_;
  bool any_lists_ = false;
  std::vector<std::uint32_t> all_;  // without lists: the largest first
  std::map<std::uint32_t, std::vector<std::uint32_t>> with_;
};

/// Returns true if every own node reaches every output, and own nodes read everything that is read.
/// A path from an output to a value read would then be a cycle already.
bool cannot_close_a_path(const RuleLayout& layout, const std::vector<PatternValueId>& reads) {
  const Rule& rule = *layout.rule;
  const auto is_own = [&](PatternNodeId n) {
    return n.valid() && std::find(layout.own.begin(), layout.own.end(), n) != layout.own.end();
  };
  std::set<PatternValueId> read_inside;
  for (PatternNodeId n : layout.own)
    read_inside.insert(rule.nodes[n].operands.begin(), rule.nodes[n].operands.end());
  for (PatternValueId v : reads)
    if (!read_inside.contains(v)) return false;
  for (PatternValueId output : layout.outputs) {
    std::set<PatternNodeId> reaching{rule.values[output].producer};
    std::vector<PatternNodeId> open(reaching.begin(), reaching.end());
    while (!open.empty()) {
      const PatternNodeId n = open.back();
      open.pop_back();
      for (PatternValueId v : rule.nodes[n].operands)
        if (const PatternNodeId p = rule.values[v].producer; is_own(p) && reaching.insert(p).second)
          open.push_back(p);
    }
    for (PatternNodeId n : layout.own)
      if (!reaching.contains(n)) return false;
  }
  return true;
}

/// Collects rules; an opened frontier is replaced by its variants.
void collect_rules(const RunRules& rules, const std::vector<RuleId>& ids,
                   std::vector<RuleId>& out) {
  for (RuleId id : ids) {
    if (const std::vector<RuleId>* variants = rules.variants(id))
      collect_rules(rules, *variants, out);
    else
      out.push_back(id);
  }
}

/// Records the own nodes, outputs, reads and consumed values of a rule, for the gates.
void note_ends(PassRule& prepared) {
  const RuleLayout& layout = prepared.layout();
  PassRule::Ends& ends = prepared.ends;
  const auto place = [](auto id) { return static_cast<std::uint16_t>(id.index); };
  for (PatternNodeId id : layout.own) ends.own.push_back(place(id));
  for (PatternValueId id : layout.outputs) ends.outputs.push_back(place(id));
  for (PatternValueId id : prepared.reads) ends.reads.push_back(place(id));
  for (PatternValueId v : layout.consumed) {
    std::uint32_t uses = 0;
    for (PatternNodeId n : layout.own)
      for (PatternValueId operand : prepared.ast().nodes[n].operands) uses += operand == v ? 1 : 0;
    ends.consumed.emplace_back(place(v), uses);
  }
}

/// Records the operand and result slots of a pattern, for rebind().
void note_slots(PassRule& prepared) {
  const Rule& rule = prepared.ast();
  std::vector<bool> bound(rule.values.size(), false);
  for (std::uint16_t n = 0; n < rule.nodes.size(); ++n) {
    const PatternNode& node = rule.nodes[PatternNodeId(n)];
    prepared.ops.push_back(node.op);
    for (std::uint16_t k = 0; k < node.results.size(); ++k)
      prepared.results.push_back({n, k, node.results[k].index});
  }
  for (std::uint16_t n = 0; n < rule.nodes.size(); ++n) {
    const PatternNode& node = rule.nodes[PatternNodeId(n)];
    for (std::uint16_t k = 0; k < node.operands.size(); ++k) {
      const PatternValueId id = node.operands[k];
      const PatternValue& value = rule.values[id];
      PassRule::Operand operand;
      operand.node = n;
      operand.slot = k;
      operand.value = id.index;
      operand.none = value.literal_none;
      operand.optional = value.optional;
      operand.produced = value.producer.valid();
      const bool number = value.literal || value.attribute_variable;  // possibly of several nodes
      operand.first = number || (!operand.produced && !bound[id.index]);
      bound[id.index] = true;
      prepared.operands.push_back(operand);
    }
  }
  prepared.taken.nodes.resize(rule.nodes.size());
  prepared.taken.swaps.resize(rule.nodes.size());
  prepared.taken.values.resize(rule.values.size());
}

PassRule prepare_rule(RunState& run, RuleId id, bool once, PassStats& stats) {
  PassRule out;
  out.rule = &run.prepare(id);
  const RuleLayout& layout = out.layout();
  const Rule& rule = out.ast();
  out.verdicts = std::make_unique<Verdicts>(run.graph, layout, out.rule->base);
  out.stats = rule.frontier ? nullptr : &stats.rules[rule.name];
  out.memo = std::none_of(rule.where.begin(), rule.where.end(), looks_around) &&
             std::none_of(rule.assume.begin(), rule.assume.end(), looks_around);
  // once: the verdicts may have been discarded since the match was found.
  out.lasting = out.memo && !once && !out.verdicts->reads_numbers();
  out.lists = !layout.plain();
  std::set<OpId> ops;
  for (const PatternNode& node : rule.nodes) {
    out.permutable = !ops.insert(node.op).second || out.permutable;
    out.ambiguous = out.ambiguous || run.graph.context().ops[node.op].traits.commutative;
  }
  out.ambiguous = out.ambiguous || out.permutable;
  for (PatternNodeId n : layout.own)
    for (PatternValueId v : rule.nodes[n].operands) {
      const PatternNodeId producer = rule.values[v].producer;
      if ((!producer.valid() || !rule.nodes[producer].own()) &&
          std::find(out.outside.begin(), out.outside.end(), v) == out.outside.end())
        out.outside.push_back(v);
    }
  for (const std::string& name : layout.reads) out.reads.push_back(rule.value_named(name));
  note_slots(out);
  note_ends(out);
  out.always_convex = !out.lists && cannot_close_a_path(layout, out.reads);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < rule.values.size(); ++i) {
    const PatternValue& value = rule.values[PatternValueId(i)];
    if (value.name.empty() || value.name == "_" || value.list || value.literal_none ||
        value.literal || value.attribute_variable)
      continue;
    names.push_back(value.name);
    out.named.push_back(PatternValueId(i));
  }
  out.names = run.report.journal.register_names(std::move(names));
  return out;
}

/// Determines for each rule the rules whose matches may block one of its matches.
void find_rules_above(const RunRules& known, std::vector<PassRule>& rules) {
  std::vector<OpCounts> ops;
  std::map<RuleId, std::uint32_t> place;
  for (const PassRule& rule : rules) {
    place.emplace(rule.layout().id, static_cast<std::uint32_t>(ops.size()));
    ops.push_back(own_ops(rule.ast()));
  }
  for (std::uint32_t a = 0; a < rules.size(); ++a) {
    if (rules[a].ast().frontier) continue;
    std::vector<RuleId> over;
    collect_rules(known, rules[a].ast().over, over);
    for (RuleId under : over)
      if (const auto b = place.find(under); b != place.end()) {
        rules[b->second].under = true;
        rules[b->second].above.push_back(a);
      }
  }
  std::vector<bool> lists;
  for (const PassRule& rule : rules) lists.push_back(!rule.ast().members.empty());
  const Nesting nesting(std::move(ops), lists);
  for (std::uint32_t b = 0; b < rules.size(); ++b) {
    std::vector<std::uint32_t>& above = rules[b].above;
    nesting.for_each_around(b, [&](std::uint32_t a) {
      if (rules[a].ast().frontier) return;
      const bool either = lists[a] || lists[b];
      if (a == b && !either) return;  // two matches of one rule have equal size
      if (nesting.may_hold(a, b, either) &&
          !known.is_over(rules[b].layout().id, rules[a].layout().id))
        above.push_back(a);
    });
    std::sort(above.begin(), above.end());
    above.erase(std::unique(above.begin(), above.end()), above.end());
  }
}

}  // namespace

std::vector<PassRule> prepare_rules(RunState& run, const Strategy& strategy, PassStats& stats) {
  std::vector<RuleId> ids;
  collect_rules(run.rules, strategy.rules, ids);
  sort_by_rank(run.rules, ids);
  const bool once = strategy.kind == ast::Strategy::Kind::once;
  std::vector<PassRule> out;
  for (RuleId id : ids) out.push_back(prepare_rule(run, id, once, stats));
  find_rules_above(run.rules, out);
  return out;
}

void map_registers(PassRule& rule, const ProgramRule& compiled, const Registers& registers,
                   bool quick, bool walk) {
  const auto read = [](const std::vector<std::uint16_t>& places, std::size_t spare) {
    std::vector<std::uint16_t> out = places;
    std::replace(out.begin(), out.end(), ProgramRule::kNone, static_cast<std::uint16_t>(spare));
    return out;
  };
  PassRule::Reading reading;
  reading.nodes = read(compiled.nodes, registers.nodes.size() - 1);
  reading.values = read(compiled.values, registers.values.size() - 1);
  reading.swaps = read(compiled.swaps, registers.swaps.size() - 1);
  for (std::uint32_t v = 0; v < compiled.constants.size(); ++v)
    if (compiled.values[v] == ProgramRule::kNone && compiled.constants[v] != ProgramRule::kNone)
      reading.numbers.emplace_back(v, compiled.constants[v]);
  rule.found.nodes.resize(reading.nodes.size());
  rule.found.swaps.resize(reading.swaps.size());
  rule.found.values.resize(reading.values.size());
  rule.simple =
      rule.memo && !rule.lists && !rule.ast().frontier && quick && compiled.anchor.valid();
  rule.compares = rule.ambiguous && !compiled.first_way;
  rule.settled = rule.simple && rule.lasting && !rule.permutable && !walk;
  if (rule.simple) {
    PassRule::Ends& ends = reading.ends = rule.ends;
    const auto move = [](std::uint16_t& place, const std::vector<std::uint16_t>& to) {
      place = to[place];
    };
    for (std::uint16_t& place : ends.own) move(place, reading.nodes);
    for (std::uint16_t& place : ends.outputs) move(place, reading.values);
    for (std::uint16_t& place : ends.reads) move(place, reading.values);
    for (auto& [place, uses] : ends.consumed) move(place, reading.values);
  }
  rule.reading = std::move(reading);
  rule.reading.places = {rule.reading.values, rule.reading.nodes};
}

[[gnu::flatten]] void read_candidate(const Graph& graph, const Registers& registers,
                                     const PassRule& rule, Candidate& out) {
  const PassRule::Reading& reading = rule.reading;
  const NodeId* const nodes = registers.nodes.data();
  const ValueId* const values = registers.values.data();
  const std::uint8_t* const swaps = registers.swaps.data();
  for (std::size_t i = 0; i < reading.nodes.size(); ++i) {
    out.nodes[i] = nodes[reading.nodes[i]];
    out.swaps[i] = swaps[reading.swaps[i]];
  }
  for (std::size_t i = 0; i < reading.values.size(); ++i) out.values[i] = values[reading.values[i]];
  for (const auto& [value, node] : reading.numbers) out.values[value] = graph.result(nodes[node]);
}

}  // namespace pw
