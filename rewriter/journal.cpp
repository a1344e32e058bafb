// Exports the counts of Journal.
#include "rewriter/journal.hpp"

#include <algorithm>

namespace pw {

std::size_t Journal::count(const RuleSet& rules, std::string_view reference) const {
  std::vector<RuleId> meant = rules.resolve(reference);
  std::size_t out = 0;
  for (const JournalEvent& event : events) {
    if (const auto* match = std::get_if<MatchEvent>(&event))
      out += std::find(meant.begin(), meant.end(), match->rule) != meant.end() ? 1 : 0;
    if (const auto* builtin = std::get_if<BuiltinEvent>(&event);
        builtin && meant.empty() && builtin->pass == reference)
      out += builtin->erased.size();
  }
  return out;
}

std::size_t Journal::total() const {
  std::size_t out = 0;
  for (const JournalEvent& event : events) {
    if (std::holds_alternative<MatchEvent>(event)) ++out;
    if (const auto* builtin = std::get_if<BuiltinEvent>(&event)) out += builtin->erased.size();
  }
  return out;
}

}  // namespace pw
