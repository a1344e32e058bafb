// The gates of a candidate: its nodes and edges still exist; it is closed, convex and clear of
// barriers; types, attributes and guards accept it; it changes something; and it need not wait.
//
// The gates run in the order of their cost. Closedness and convexity precede the guard cache, so
// that cached verdicts depend on types and attributes alone. Convexity is decided by labels if
// possible: only a user of an output that precedes the last producer of an operand of the right
// side can lie on a path back into the match. If there is such a user, find_bad_path searches
// between these two labels. A match is blocked while a legal match overlaps it that is declared
// over it, or that consumes all of its nodes and more.
// over it, or that consumes all of its nodes and more.
#include <algorithm>

#include "rewriter/engine/engine.hpp"
#include "rewriter/engine/legality.hpp"

namespace pw {

/// Rebinds a known match from its nodes alone, in `taken` of its rule. Returns false if it no
/// longer exists.
[[gnu::flatten]] bool RuleEngine::rebind(const Entry& entry) {
  Prepared& rule = rules_[entry.rule];
  const std::uint32_t* const known = pool_.data() + entry.at;
  const std::uint32_t swaps = known[kSwaps];
  NodeId* const nodes = rule.taken.nodes.data();
  ValueId* const values = rule.taken.values.data();
  std::uint8_t* const exchanged = rule.taken.swaps.data();
  for (std::size_t i = 0; i < rule.ops.size(); ++i) {
    const NodeId node{std::size_t{known[kNodes + i]}};
    if (!node.valid() || !graph_.alive(node) || graph_.op(node) != rule.ops[i]) return false;
    nodes[i] = node;
    exchanged[i] = i < 32 ? static_cast<std::uint8_t>((swaps >> i) & 1u) : 0;
  }
  for (const ResultSlot& result : rule.results)
    values[result.value] = graph_.result(nodes[result.node], result.slot);
  for (const Operand& wanted : rule.operands) {
    const ValueId value =
        operand_at(graph_, nodes[wanted.node], wanted.slot, exchanged[wanted.node] != 0);
    if (wanted.none) {
      if (value.valid()) return false;
      continue;
    }
    if (!value.valid() && !wanted.optional) return false;
    ValueId& bound = values[wanted.value];
    if (!wanted.first && (wanted.produced || bound.valid()) && bound != value) return false;
    bound = value;
  }
  return true;
}

/// Returns the position: the smallest label of the nodes that the match replaces.
std::uint64_t RuleEngine::position_of(const Prepared& rule, const Candidate& c) const {
  std::uint64_t out = ~std::uint64_t{0};
  for (PatternNodeId id : rule.layout().own) out = std::min(out, graph_.label(c.nodes[id.index]));
  return out;
}

bool RuleEngine::is_own(const Prepared& rule, const Candidate& c, NodeId node) {
  for (PatternNodeId id : rule.layout().own)
    if (c.nodes[id.index] == node) return true;
  return false;
}

/// Counts a rejection by its code, and returns false.
bool RuleEngine::reject(Prepared& rule, const char* reason) {
  if (near_miss_code(reason) != nullptr) ++rule.rejections[place_of(reason)];
  return false;
}

bool RuleEngine::reject(Prepared& rule, const Verdict& verdict) {
  if (verdict.place != Verdict::kNoPlace) ++rule.rejections[verdict.place];
  return false;
}

/// Runs the gates. Their order matters: a cached verdict must not depend on the place of the match.
const Verdict* RuleEngine::fits(std::uint32_t index, NodeId anchor, const Candidate& c,
                                const Verdict* known) {
  Prepared& rule = rules_[index];
  const Surely surely =
      surely_legal(rule.ends, rule.always_convex, c.nodes.data(), c.values.data());
  in_place_ = surely == Surely::in_place;
  if (surely == Surely::not_known) {
    if (!closed(rule, c)) return reject(rule, "N08"), nullptr;
    if (!convex(rule, anchor, c)) return reject(rule, "N13"), nullptr;
  }
  const Verdict& verdict = known != nullptr ? *known
                           : rule.memo      ? rule.verdicts->ask(c)
                                            : rule.verdicts->ask_anew(c);
  if (verdict.yes()) return &verdict;
  if (!verdict.refused.empty()) run_.warn_refused(rule.ast(), graph_, anchor, verdict.refused);
  return reject(rule, verdict), nullptr;
}

/// Returns true if a match is worth keeping. A verdict in the guard cache decides alone; without
/// one, closedness and convexity are checked too. All gates run again when it is dequeued.
bool RuleEngine::promising(std::uint32_t index, NodeId anchor, const Candidate& c) {
  Prepared& rule = rules_[index];
  if (careful_)
    return (rule.ambiguous ? fits(index, anchor, c) : legal(index, anchor, c)) != nullptr;
  const Verdict* known = rule.memo ? rule.verdicts->known(c) : nullptr;
  if (known == nullptr) return fits(index, anchor, c) != nullptr;
  return known->yes() || reject(rule, *known);
}

/// Runs the gates of fits(), then refuses a match that changes nothing or crosses a barrier (N14).
/// The barrier is the most expensive gate, so it comes last.
const Verdict* RuleEngine::legal(std::uint32_t index, NodeId anchor, const Candidate& c,
                                 const Verdict* known) {
  const Verdict* verdict = fits(index, anchor, c, known);
  if (verdict == nullptr) return nullptr;
  Prepared& rule = rules_[index];
  const Recipe& recipe = verdict->recipe;
  if (recipe.may_change_nothing && changes_nothing(recipe, rule, c)) return nullptr;
  if (clear_of_barriers(rule, anchor, c)) return verdict;
  return reject(rule, "N14"), nullptr;
}

/// Returns true if no consumed value is used outside the match, and the right side reads none.
bool RuleEngine::closed(const Prepared& rule, const Candidate& c) const {
  const RuleLayout& layout = rule.layout();
  for (std::size_t i = 0; i < layout.consumed.size(); ++i) {
    const ValueId value = c.values[layout.consumed[i].index];
    if (graph_.is_output(value)) return false;
    if (graph_.use_count(value) == rule.ends.consumed[i].second) continue;
    std::size_t inside = 0;  // distinct names may be bound to one value
    for (PatternNodeId id : layout.own)
      for (std::size_t k = 0; k < graph_.operand_count(c.nodes[id.index]); ++k)
        inside += graph_.operand(c.nodes[id.index], k) == value ? 1 : 0;
    if (graph_.use_count(value) != inside) return false;
  }
  for (PatternValueId id : rule.reads) {
    const ValueId value = c.values[id.index];
    if (value.valid() && graph_.producer(value).valid() && is_own(rule, c, graph_.producer(value)))
      return false;
  }
  return true;
}

/// Collects the boundary values, on which convexity depends.
void RuleEngine::read_boundary(const Prepared& rule, const Candidate& c,
                               std::vector<ValueId>& reads, std::vector<ValueId>& writes) {
  reads.clear();
  for (PatternValueId id : rule.reads)
    if (c.values[id.index].valid()) reads.push_back(c.values[id.index]);
  read_writes(rule, c, writes);
}

void RuleEngine::read_writes(const Prepared& rule, const Candidate& c,
                             std::vector<ValueId>& writes) {
  writes.resize(rule.ends.outputs.size());
  for (std::size_t i = 0; i < writes.size(); ++i) writes[i] = c.values[rule.ends.outputs[i]];
}

/// Returns true if no path leads back into the match. Only a user of an output that precedes the
/// last producer of a value read can lie on such a path.
bool RuleEngine::convex(const Prepared& rule, NodeId anchor, const Candidate& c) {
  if (rule.always_convex) return true;
  std::uint64_t last = 0;
  for (PatternValueId id : rule.reads) {
    const ValueId value = c.values[id.index];
    const NodeId producer = value.valid() ? graph_.producer(value) : NodeId();
    if (producer.valid()) last = std::max(last, graph_.label(producer));
  }
  bool suspicious = false;
  for (PatternValueId id : rule.layout().outputs) {
    const ValueId value = c.values[id.index];
    if (graph_.label(graph_.producer(value)) >= last) continue;
    for (UseId u = graph_.first_use(value); u.valid() && !suspicious; u = graph_.next_use(u)) {
      const NodeId user = graph_.user(u);
      suspicious = graph_.label(user) <= last && !is_own(rule, c, user);
    }
  }
  if (!suspicious) return true;
  Boundary boundary;
  read_boundary(rule, c, boundary.reads, boundary.writes);
  const std::vector<NodeId> path = find_bad_path(graph_, rule.layout(), c.nodes, boundary);
  if (path.empty()) return true;
  for (NodeId n : path) wait_for(n, anchor);
  refused_.push_back(anchor);
  return false;
}

bool RuleEngine::clear_of_barriers(const Prepared& rule, NodeId anchor, const Candidate& c) {
  if (!run_.barriers) return true;
  Boundary boundary;
  read_boundary(rule, c, boundary.reads, boundary.writes);
  const std::optional<NodeId> barrier = find_barrier(graph_, rule.layout(), c.nodes, boundary);
  if (!barrier) return true;
  wait_for(*barrier, anchor);
  refused_.push_back(anchor);
  return false;
}

bool RuleEngine::changes_nothing(const Recipe& recipe, const Prepared& rule,
                                 const Candidate& c) const {
  for (std::size_t i = 0; i < recipe.outputs.size(); ++i)
    if (!same_as(recipe, recipe.outputs[i], c.values[rule.layout().outputs[i].index], c))
      return false;
  return true;
}

/// Returns true if the recipe would make a value that equals the given one by its computation.
bool RuleEngine::same_as(const Recipe& recipe, Recipe::Source source, ValueId value,
                         const Candidate& c) const {
  if (source.absent() || !value.valid()) return source.absent() && !value.valid();
  if (!source.fresh()) return c.values[source.index()] == value;
  if (graph_.is_input(value)) return false;
  const auto node = std::find_if(
      recipe.nodes.begin(), recipe.nodes.end(),
      [&](const Recipe::NewNode& n) { return source.index() < n.first_result + n.result_count; });
  const NodeId there = graph_.producer(value);
  if (graph_.op(there) != node->op || graph_.attributes(there) != node->attributes ||
      graph_.operand_count(there) != node->operand_count ||
      graph_.result_index(value) != source.index() - node->first_result)
    return false;
  for (std::size_t k = 0; k < node->operand_count; ++k)
    if (!same_as(recipe, recipe.operands[node->first_operand + k], graph_.operand(there, k), c))
      return false;
  return true;
}

/// Returns a key that is equal for all assignments of a rule to one set of nodes.
std::vector<std::uint32_t> RuleEngine::identity(std::uint32_t rule,
                                                const std::vector<NodeId>& nodes) {
  std::vector<std::uint32_t> out{rule};
  for (NodeId n : nodes) out.push_back(n.index);
  std::sort(out.begin() + 1, out.end());
  return out;
}

/// Returns true if the match must wait: it overlaps one that could be taken, of a rule declared
/// above or with all of its nodes and more. `own_` holds the nodes it replaces.
bool RuleEngine::blocked(std::uint32_t rank, NodeId anchor_of_match) {
  const Prepared& rule = rules_[rank];
  const NodeSet own(own_);
  std::vector<NodeId> anchors;
  const auto begins_at = [&](OpId op) {
    return std::any_of(rule.above.begin(), rule.above.end(), [&](std::uint32_t above) {
      const PatternNodeId anchor = program_.rules[above].anchor;
      return !anchor.valid() || rules_[above].ast().nodes[anchor].op == op;
    });
  };
  // A match that holds all of the nodes is found from any of them.
  for (std::size_t i = 0; i < (rule.under ? own_.size() : 1); ++i)
    for (const WayBack& way : program_.ways_of(graph_.op(own_[i])))
      if (begins_at(way.steps.empty() ? graph_.op(own_[i]) : way.steps.back().to))
        follow(way, own_[i], anchors);
  sort_once(anchors);
  std::vector<NodeId> blocker;
  const auto overlaps = [&](std::uint32_t index, const std::vector<NodeId>& others) {
    std::size_t shared = 0;
    for (NodeId n : others) shared += own.contains(n) ? 1 : 0;
    if (shared == 0 || is_behind(graph_.label(first_of(graph_, others)))) return false;
    if (run_.rules.is_over(rules_[index].layout().id, rule.layout().id)) return true;
    return shared == own_.size() && others.size() > own_.size();
  };
  for (NodeId anchor : anchors) {
    NoTrace none;
    StepBudget budget{steps_};
    execute(program_, graph_, anchor, constant_, *registers_, none, budget,
            [&](std::uint32_t index) {
              if (!blocker.empty() ||
                  std::find(rule.above.begin(), rule.above.end(), index) == rule.above.end())
                return false;
              Candidate& other = rules_[index].found;
              read_candidate(rules_[index], other);
              for_each_match(index, anchor, other, [&](const std::vector<NodeId>& others) {
                if (blocker.empty() && overlaps(index, others)) blocker = others;
              });
              return false;
            });
    if (!blocker.empty()) break;
  }
  if (blocker.empty()) return false;
  for (NodeId n : blocker) wait_for(n, anchor_of_match);
  return true;
}

}  // namespace pw
