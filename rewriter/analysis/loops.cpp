#include <set>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "rewriter/analysis/certificate.hpp"
#include "rewriter/analysis/checks.hpp"
#include "rewriter/analysis/enables.hpp"
#include "rewriter/analysis/freeze.hpp"
#include "rewriter/analysis/orders/outcome.hpp"

namespace pw {
namespace {

/// Returns the cycle of rules in the enabling relation, or else all rules that balance each other.
std::vector<std::string> names_of_cycle(const RuleSet& rules, const Repetition& repetition,
                                        const Certificate& certificate) {
  std::set<std::string> within;
  for (const auto& [rule, times] : certificate.balance)
    within.insert(written_name(rules.rules[rule]));
  std::vector<RuleId> some;  // nothing else is on a path within these
  for (RuleId id : repetition.rules)
    if (within.contains(written_name(rules.rules[id]))) some.push_back(id);
  const Enables enables = find_enables(rules, some);
  std::vector<std::string> out;
  for (std::size_t i : shortest_cycle(enables, within)) out.push_back(enables.rules[i].name);
  if (out.empty()) out.assign(within.begin(), within.end());
  return out;
}

std::string arrows(const std::vector<std::string>& cycle) {
  std::string out;
  for (const std::string& name : cycle) out += "`" + name + "` → ";
  return out + "`" + cycle.front() + "`";
}

Diagnostic describe(const RuleSet& rules, const Repetition& repetition,
                    const std::vector<std::string>& cycle) {
  Diagnostic out = warning_at(
      repetition.strategy->span, "PW1152",
      cycle.empty() ? fmt::format("`{}` may not end", repetition.owner)
                    : fmt::format("`{}` may not terminate: {}", repetition.owner, arrows(cycle)),
      "limit it on purpose with `fuel N`");
  out.label = "states no `fuel`";
  std::set<std::string> named(cycle.begin(), cycle.end());
  for (RuleId id : repetition.rules) {
    const Rule& rule = rules.rules[id];
    if (named.erase(written_name(rule)) != 0)
      out.secondary.push_back({rule.name_span, "builds what is matched again"});
  }
  return out;
}

/// Returns a graph of one of the rules on which the owner does not terminate.
std::string endless_test(const Analysis& analysis, const Repetition& repetition,
                         const std::vector<std::string>& cycle) {
  const RuleSet& rules = analysis.rules;
  constexpr std::size_t kEnough = 8;  // of one rule, on a graph of a few nodes
  const Strategy* owner = rules.strategy(repetition.owner);
  if (owner == nullptr || !owner->ranges.empty()) return {};
  const Reach reach = analysis.reach(owner->rules);
  const std::set<std::string> named(cycle.begin(), cycle.end());
  for (RuleId id : repetition.rules) {
    const std::string written = written_name(rules.rules[id]);
    if (named.count(written) == 0 || !is_plain(rules.rules[id])) continue;
    for (const Sample& sample : sample_graphs(rules, id, analysis.params, 2, 16)) {
      const auto run = run_on(sample.frozen.graph, reach, *owner, sample.frozen.params, 2000);
      if (!run || run->stop == StopReason::fixpoint || run->count(rules, written) <= kEnough)
        continue;
      return test_text(as_name(repetition.owner) + "_goes_on", sample.frozen.graph,
                       {*owner, "", repetition.owner}, rules, sample.frozen.params,
                       {fmt::format("{} > {}", written, kEnough)});
    }
  }
  return {};
}

}  // namespace

void find_loops(Analysis& analysis) {
  const RuleSet& rules = analysis.rules;
  std::set<std::vector<std::string>> reported;
  for (const Repetition& repetition : repetitions(rules)) {
    std::vector<Effect> effects;
    for (RuleId id : repetition.rules)
      if (!rules.rules[id].frontier) effects.push_back(effect_of(rules, id));
    const Certificate certificate = find_certificate(effects);
    if (certificate.weights) continue;
    const std::vector<std::string> cycle = names_of_cycle(rules, repetition, certificate);
    if (!reported.insert(cycle).second) continue;
    analysis.out.findings.push_back({Finding::Kind::loop, cycle, describe(rules, repetition, cycle),
                                     endless_test(analysis, repetition, cycle)});
  }
}

}  // namespace pw
