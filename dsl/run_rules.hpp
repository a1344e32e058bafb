// The rules of a run: those of a set, and behind them the variants that frontiers of recursive
// patterns opened to while it ran. A set itself never changes, so that several runs may have it at
// once; what a run opens is the run's.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

/// Ids go on behind those of the set. Rules stay where they are while others are opened.
struct OpenedRules {
  std::deque<Rule> rules;
  std::map<RuleId, RuleId> from;                   ///< the frontier that gave a rule
  std::map<RuleId, std::vector<RuleId>> variants;  ///< of a frontier, by their names
};

class RunRules {
 public:
  /// Implicit: a set is the rules of a run that has opened none. It outlives the run.
  RunRules(const RuleSet& set) : set_(&set) {}
  /// Those that a run of the set had in the end.
  RunRules(const RuleSet& set, std::shared_ptr<OpenedRules> opened);

  [[nodiscard]] const RuleSet& set() const { return *set_; }
  [[nodiscard]] std::size_t size() const { return set_->rules.size() + opened_count(); }
  [[nodiscard]] const Rule& operator[](RuleId id) const {
    const std::size_t own = set_->rules.size();
    return id.index < own ? set_->rules[id] : opened_->rules[id.index - own];
  }
  /// Opens a frontier: makes the variants that are one level deeper, frontiers among them, and
  /// returns their ids; the same ids when it is asked again. They have the frontier's rank, and
  /// stand in the order of their names, so that nothing depends on when a frontier was opened.
  /// Nothing for any other rule. `context`: in which the run interns; it has the ids of the set's.
  const std::vector<RuleId>& open(RuleId frontier, const ContextPtr& context);
  /// The variants that a frontier was opened to; null where it was not.
  [[nodiscard]] const std::vector<RuleId>* variants(RuleId frontier) const;
  /// The frontier that gave a rule; invalid of those of the set.
  [[nodiscard]] RuleId from(RuleId id) const;
  /// The rule of the set that it is, or that it was opened from.
  [[nodiscard]] RuleId loaded(RuleId id) const;
  /// Whether `above` is declared over `below`, or over a frontier that gave it.
  [[nodiscard]] bool is_over(RuleId above, RuleId below) const;
  /// What was opened, for whoever reads ids of the run after it; null: nothing.
  [[nodiscard]] std::shared_ptr<OpenedRules> opened() const { return opened_; }

 private:
  [[nodiscard]] std::size_t opened_count() const { return opened_ ? opened_->rules.size() : 0; }

  const RuleSet* set_;
  std::shared_ptr<OpenedRules> opened_;  ///< null until there are some
};

}  // namespace pw
