// The rules of a run: those of a set, followed by the variants that frontiers of recursive patterns
// opened to during the run. A set never changes, so several runs may share it; opened variants
// belong to the run.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

/// Variants opened by a run. Ids continue those of the set. Rules stay in place while others are
/// opened.
struct OpenedRules {
  std::deque<Rule> rules;
  std::map<RuleId, RuleId> from;                   ///< the frontier that gave a rule
  std::map<RuleId, std::vector<RuleId>> variants;  ///< of a frontier, by their names
};

class RunRules {
 public:
  /// Creates the rules of a run that has opened none; implicit. The set must outlive the run.
  RunRules(const RuleSet& set) : set_(&set) {}
  /// Creates the rules that a run of the set had at its end.
  RunRules(const RuleSet& set, std::shared_ptr<OpenedRules> opened);

  [[nodiscard]] const RuleSet& set() const { return *set_; }
  [[nodiscard]] std::size_t size() const { return set_->rules.size() + opened_count(); }
  [[nodiscard]] const Rule& operator[](RuleId id) const {
    const std::size_t own = set_->rules.size();
    return id.index < own ? set_->rules[id] : opened_->rules[id.index - own];
  }
  /// Opens a frontier: makes the variants that are one level deeper, frontiers among them, and
  /// returns their ids; the same ids on each call. They have the frontier's rank, and are in the
  /// order of their names, so that nothing depends on when a frontier was opened. Empty for any
  /// other rule. `context`: that in which the run interns; it has the ids of the set's.
  const std::vector<RuleId>& open(RuleId frontier, const ContextPtr& context);
  /// Returns the variants that a frontier was opened to; null if it was not.
  [[nodiscard]] const std::vector<RuleId>* variants(RuleId frontier) const;
  /// Returns the frontier that gave a rule; invalid for rules of the set.
  [[nodiscard]] RuleId from(RuleId id) const;
  /// Returns the rule of the set that it is, or that it was opened from.
  [[nodiscard]] RuleId loaded(RuleId id) const;
  /// Returns true if `above` is declared over `below`, or over a frontier that gave it.
  [[nodiscard]] bool is_over(RuleId above, RuleId below) const;
  /// Returns the opened rules, for later readers of the run's ids; null: none.
  [[nodiscard]] std::shared_ptr<OpenedRules> opened() const { return opened_; }

 private:
  [[nodiscard]] std::size_t opened_count() const { return opened_ ? opened_->rules.size() : 0; }

  const RuleSet* set_;
  std::shared_ptr<OpenedRules> opened_;  ///< null until there are some
};

}  // namespace pw
