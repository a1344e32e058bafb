#include "dsl/run_rules.hpp"

#include <algorithm>
#include <utility>

#include "dsl/rule_stage.hpp"

namespace pw {

RunRules::RunRules(const RuleSet& set, std::shared_ptr<OpenedRules> opened)
    : set_(&set), opened_(std::move(opened)) {}

const std::vector<RuleId>& RunRules::open(RuleId frontier, const ContextPtr& context) {
  static const std::vector<RuleId> kNone;
  if (const std::vector<RuleId>* known = variants(frontier)) return *known;
  const Rule& from = (*this)[frontier];
  if (!from.frontier) return kNone;
  if (!opened_) opened_ = std::make_shared<OpenedRules>();
  Diagnostics ignored;  // errors of the rule were reported at the levels above
  RuleStage stage(context, from.closed->scope->program, ignored);
  std::vector<RuleId> ids;
  for (Rule& rule : stage.open(*from.closed)) {
    rule.rank = from.rank;
    rule.over = from.over;
    ids.emplace_back(size());
    opened_->from.emplace(ids.back(), frontier);
    opened_->rules.push_back(std::move(rule));
  }
  return opened_->variants.emplace(frontier, std::move(ids)).first->second;
}

const std::vector<RuleId>* RunRules::variants(RuleId frontier) const {
  if (!opened_) return nullptr;
  const auto found = opened_->variants.find(frontier);
  return found == opened_->variants.end() ? nullptr : &found->second;
}

RuleId RunRules::from(RuleId id) const {
  if (!opened_) return {};
  const auto found = opened_->from.find(id);
  return found == opened_->from.end() ? RuleId() : found->second;
}

RuleId RunRules::loaded(RuleId id) const {
  while (id.index >= set_->rules.size()) id = from(id);
  return id;
}

bool RunRules::is_over(RuleId above, RuleId below) const {
  const std::vector<RuleId>& over = (*this)[above].over;
  for (RuleId id = below; id.valid(); id = from(id))
    if (std::find(over.begin(), over.end(), id) != over.end()) return true;
  return false;
}

}  // namespace pw
