// Resolves references to rules by name: RuleSet::resolve for many references. Ignores rules that
// are added to the set later.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

class RuleIndex {
 public:
  explicit RuleIndex(const RuleSet& set);
  /// Resolves as RuleSet::resolve does: `rule`, `group.rule`, `rule[row]`, `rule[*]`, `group`,
  /// `group.*`.
  [[nodiscard]] std::vector<RuleId> resolve(std::string_view reference) const;

 private:
  using Table = std::map<std::string, std::vector<RuleId>, std::less<>>;
  Table names_;     ///< by every name of a rule alone, its family's and its group's
  Table families_;  ///< by the name before `[`, with the group
  Table groups_;
};

}  // namespace pw
