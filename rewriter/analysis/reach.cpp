#include "rewriter/analysis/reach.hpp"

#include <algorithm>

#include "rewriter/analysis/effects.hpp"

namespace pw {
namespace {

void sort_unique(std::vector<OpId>& ops) {
  std::sort(ops.begin(), ops.end());
  ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
}

/// Returns the number of rules that match each op.
std::vector<std::size_t> matched_by(const IdVec<RuleId, RuleOps>& ops,
                                    const std::vector<RuleId>& ids, std::size_t count) {
  std::vector<std::size_t> out(count);
  for (RuleId id : ids)
    for (OpId op : ops[id].matched) ++out[op.index];
  return out;
}

/// Closure from the ops of a graph: a rule waits for one missing op at a time.
class Growth {
 public:
  Growth(const IdVec<RuleId, RuleOps>& ops, const std::vector<RuleId>& ids, std::size_t count)
      : ops_(ops), ids_(ids), there_(count), waiting_(count) {}

  void add(OpId op) {
    if (there_[op.index]) return;
    there_[op.index] = true;
    fresh_.push_back(op);
  }
  /// Keeps the rule, or lets it wait for a missing op.
  void ask(std::uint32_t place) {
    const RuleOps& ops = ops_[ids_[place]];
    for (OpId op : ops.matched)
      if (!there_[op.index]) return waiting_[op.index].push_back(place);
    kept_.push_back(place);
    for (OpId op : ops.built) add(op);
  }
  void run(const std::vector<std::vector<std::uint32_t>>& rarest) {
    while (!fresh_.empty()) {
      const OpId op = fresh_.back();
      fresh_.pop_back();
      for (std::uint32_t place : rarest[op.index]) ask(place);
      for (std::uint32_t place : std::exchange(waiting_[op.index], {})) ask(place);
    }
  }
  std::vector<RuleId> kept() {
    std::sort(kept_.begin(), kept_.end());
    std::vector<RuleId> out;
    for (std::uint32_t place : kept_) out.push_back(ids_[place]);
    return out;
  }

 private:
  const IdVec<RuleId, RuleOps>& ops_;
  const std::vector<RuleId>& ids_;
  std::vector<bool> there_;  // by op
  std::vector<std::vector<std::uint32_t>> waiting_;
  std::vector<OpId> fresh_;
  std::vector<std::uint32_t> kept_;
};

}  // namespace

IdVec<RuleId, RuleOps> ops_of_rules(const RuleSet& rules) {
  IdVec<RuleId, RuleOps> out;
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    RuleOps ops;
    for (const PatternNode& node : rules.rules[RuleId(i)].nodes)
      if (node.negation < 0 && !node.members.valid()) ops.matched.push_back(node.op);
    for (const auto& [name, count] : effect_of(rules, RuleId(i)).built)
      if (const OpId op = rules.context->ops.find(name); op.valid()) ops.built.push_back(op);
    sort_unique(ops.matched);
    out.push_back(std::move(ops));
  }
  return out;
}

Reach::Reach(const RuleSet& rules, const IdVec<RuleId, RuleOps>& ops, std::vector<RuleId> ids)
    : rules_(rules), ops_(ops), ids_(std::move(ids)), waiting_(rules.context->ops.size()) {
  const std::vector<std::size_t> count = matched_by(ops_, ids_, waiting_.size());
  for (std::uint32_t place = 0; place < ids_.size(); ++place) {
    open_ = open_ || rules_.rules[ids_[place]].frontier;
    const std::vector<OpId>& matched = ops_[ids_[place]].matched;
    const auto rarest = std::min_element(matched.begin(), matched.end(), [&](OpId a, OpId b) {
      return count[a.index] < count[b.index];
    });
    (rarest == matched.end() ? always_ : waiting_[rarest->index]).push_back(place);
  }
}

std::size_t Reach::pattern_nodes(const Graph& graph) const {
  std::size_t out = 0;
  for (RuleId id : of(graph)) out += rules_.rules[id].nodes.size();
  return out;
}

std::vector<RuleId> Reach::of(const Graph& graph) const {
  if (open_) return ids_;
  Growth growth(ops_, ids_, waiting_.size());
  for (std::uint32_t place : always_) growth.ask(place);
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) growth.add(graph.op(n));
  growth.run(waiting_);
  return growth.kept();
}

}  // namespace pw
