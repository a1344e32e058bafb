#include "verify/baseline.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/try.hpp"

namespace pw {

Result<PipelineCounts> count_pipeline(const Graph& graph, const RuleSet& rules,
                                      const std::string& pipeline, const Env& params) {
  Graph copy = graph;
  RewriteReport report = PW_TRY(run_pipeline(copy, rules, pipeline, params));
  PipelineCounts out;
  out.nodes = copy.node_count();
  const RunRules ran = report.journal.rules_of(rules);
  for (const JournalEvent& event : report.journal)
    if (const auto* match = std::get_if<MatchEvent>(&event)) ++out.rewrites[ran[match->rule].name];
  return out;
}

std::string counts_difference(const PipelineCounts& before, const PipelineCounts& after) {
  std::vector<std::tuple<std::string, std::size_t, std::size_t>> rows;
  std::set<std::string> names;
  for (const PipelineCounts* side : {&before, &after})
    for (const auto& [rule, count] : side->rewrites) names.insert(rule);
  const auto count = [](const PipelineCounts& side, const std::string& rule) {
    const auto found = side.rewrites.find(rule);
    return found == side.rewrites.end() ? std::size_t{0} : found->second;
  };
  for (const std::string& rule : names)
    if (count(before, rule) != count(after, rule))
      rows.emplace_back(rule, count(before, rule), count(after, rule));
  if (before.nodes != after.nodes) rows.emplace_back("nodes left", before.nodes, after.nodes);
  if (rows.empty()) return "";
  std::size_t width = 4;
  for (const auto& [name, a, b] : rows) width = std::max(width, name.size());
  std::string out = fmt::format("  {:<{}}  {:>8}  {:>8}\n", "rule", width, "before", "after");
  for (const auto& [name, a, b] : rows)
    out += fmt::format("  {:<{}}  {:>8}  {:>8}\n", name, width, a, b);
  return out;
}

}  // namespace pw
