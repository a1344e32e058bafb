// Exports KeptPass's change of rules.
#include <algorithm>
#include <utility>

#include "rewriter/kept_run.hpp"
#include "rewriter/rule_change.hpp"

namespace pw {
namespace {

/// Rewrites by a rule that was edited: a run from scratch makes so many in the time in which one is
/// found out to be another.
constexpr std::size_t kRunsPerChange = 8, kFewChanged = 256;

}  // namespace

/// Rules that differ in guards, types, attributes or what they make are judged again, once for each
/// question that the run before put. A rewrite that another verdict concerns is decided again.
bool KeptPass::change(std::shared_ptr<const RuleSet> rules, const Strategy& strategy) {
  if (broken_ || !run_) return false;
  const auto no = [&](std::string_view why) { return fail(why), false; };
  if (!waited_.empty()) return no("a match had to wait for one of another rule");
  auto next = std::make_unique<Run>(run_->shared, *rules, strategy, params_);
  RuleEngine &old = run_->engine, &engine = next->engine;
  engine.prepare();
  if (engine.rules_.size() != old.rules_.size() || !engine.local_) return no("other rules");
  std::vector<std::vector<char>> other(
      engine.rules_.size());  // by rule and verdict; none: all stay
  for (std::uint32_t i = 0; i < engine.rules_.size(); ++i) {
    RuleEngine::Prepared &before = old.rules_[i], &after = engine.rules_[i];
    if (before.ast().name != after.ast().name || before.above != after.above ||
        before.under != after.under)
      return no("other rules");
    if (text_of(run_->rules, before.layout().id) == text_of(next->rules, after.layout().id)) {
      after.verdicts = std::move(before.verdicts);
      after.verdicts->adopt(after.layout(), after.rule->base);
      continue;
    }
    if (!same_pattern(before.ast(), after.ast())) return no("a rule has another pattern");
    std::unique_ptr<Verdicts> judged = before.verdicts->judged_by(after.layout(), after.rule->base);
    if (!judged) return no("a rule cannot be judged apart from the graph");
    for (std::uint32_t v = 0; v < judged->size(); ++v) {
      const Verdict &was = before.verdicts->number(v), &is = judged->number(v);
      if (!is.conditions.empty() || !is.refused.empty() || !was.refused.empty())
        return no("a rule rests on a condition, or cannot be built");
      if (is.yes() && !was.yes()) again_ = "a rule fires where it did not";
      if (is.yes() && is.recipe.may_change_nothing != was.recipe.may_change_nothing)
        again_ = "a rule may change nothing";
      if (is.yes() == was.yes() && same_recipe(is.recipe, was.recipe)) continue;
      other[i].resize(judged->size(), 0);
      other[i][v] = 1;
    }
    after.verdicts = std::move(judged);
  }
  if (again_.empty()) note_changed(other);
  engine.take_program_of(old);
  engine.take_memory_of(old);
  engine.guard_ = old.guard_;
  engine.version_ = run_->graph.renumberings();
  if (again_.empty()) engine.latest_.assign(run_->graph.node_bound() + 1024, RuleEngine::kNoEntry);
  engine.kept_ = this;
  plans_.clear();
  const std::shared_ptr<const RuleSet> rules_before = std::exchange(rules_, std::move(rules));
  run_ = std::move(next);
  strategy_ = &strategy;
  return true;
}

/// The rewrites that another verdict concerns are decided again.
void KeptPass::note_changed(const std::vector<std::vector<char>>& other) {
  const std::size_t most = std::max(kFewChanged, sequence_.size() / kRunsPerChange);
  std::size_t changed = 0;
  for (std::uint32_t number : sequence_) {
    Record& record = records_[number];
    const std::vector<char>& verdicts = other[record.rule];
    if (verdicts.empty() || verdicts[record.verdict] == 0) continue;
    if (++changed > most) {
      again_ = "a rule that fires at many places was edited";
      return;
    }
    record.verdict = kNone;  // equal to no match of now
    const std::span<const NodeId> nodes = nodes_of(record);
    changed_.insert(changed_.end(), nodes.begin(), nodes.end());
  }
}

}  // namespace pw
