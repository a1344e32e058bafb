#include "rewriter/analysis/variants.hpp"

#include <algorithm>

#include "rewriter/analysis/freeze.hpp"

namespace pw {

Variants variants_of(Analysis& analysis, const RulePass& pass) {
  const RuleSet& rules = analysis.rules;
  Variants out;
  for (RuleId id : pass.strategy->rules) {
    const Rule& rule = rules.rules[id];
    if (rule.frontier) continue;
    if (is_plain(rule))
      out[written_name(rule)].push_back(id);
    else
      analysis.note_not_analysed(
          {written_name(rule)},
          "`" + written_name(rule) +
              "`: it has lists or `unless`, so its overlaps and loops are not checked");
  }
  for (auto& [name, ids] : out)
    std::stable_sort(ids.begin(), ids.end(), [&](RuleId a, RuleId b) {
      return rules.rules[a].nodes.size() < rules.rules[b].nodes.size();
    });
  return out;
}

std::string row_name(const Rule& rule) { return rule.name.substr(0, rule.name.find('#')); }

}  // namespace pw
