// The record of a run: passes, matches, and every created, erased, redirected or changed thing, by
// ids that are never reused. The viewer's timeline and all counts are read from it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

struct PassBegin {
  std::string pass;
  std::uint64_t hash = 0;  ///< structural hash before
  std::size_t nodes = 0;
};
struct PassEnd {
  std::string pass;
  std::uint64_t hash = 0;
  std::size_t nodes = 0;
  double seconds = 0;  ///< not part of deterministic output
};
struct MatchEvent {
  RuleId rule;
  std::vector<NodeId> matched;  ///< pattern order
  std::vector<std::pair<std::string, ValueId>> bindings;
  std::vector<NodeId> created, erased;
};
struct BuiltinEvent {  ///< dce, cse
  std::string pass;
  std::vector<NodeId> erased;
};
using JournalEvent = std::variant<PassBegin, PassEnd, MatchEvent, BuiltinEvent>;

struct Journal {
  std::vector<JournalEvent> events;
  /// Rewrites by full rule name, in the final history.
  [[nodiscard]] std::size_t count(const RuleSet& rules, std::string_view reference) const;
  [[nodiscard]] std::size_t total() const;
};

/// JSON Lines; times left out unless asked for, so that the same input gives the same bytes.
std::string journal_to_json_lines(const Journal& journal, const Graph& graph, const RuleSet& rules,
                                  bool times = false);

}  // namespace pw
