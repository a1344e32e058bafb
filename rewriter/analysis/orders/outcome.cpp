#include "rewriter/analysis/orders/outcome.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/characters.hpp"
#include "base/hash.hpp"
#include "dsl/build/strategy_options.hpp"
#include "graph/text/text.hpp"
#include "rewriter/strategies/driver.hpp"

namespace pw {
namespace {

constexpr std::uint64_t kMatcherSteps = std::uint64_t{1} << 16;  // a match takes a few a node

/// Returns true if the run gave up, so that its result is unknown.
bool gave_up(const RewriteReport& report) {
  return std::any_of(report.warnings.begin(), report.warnings.end(),
                     [](const Diagnostic& d) { return d.code == "PW1113"; });
}

/// Returns ` with tp = 2` for each param that differs from its default.
std::string with_params(const RuleSet& rules, const Env& params) {
  std::string out;
  for (const auto& [name, param] : rules.params) {
    const auto it = params.find(name);
    const auto* value = it == params.end() ? nullptr : std::get_if<Attribute>(&it->second);
    if (value == nullptr || *value == param.value) continue;
    out += fmt::format("{}{} = {}", out.empty() ? " with " : ", ", name,
                       rules.context->attributes.print(*value));
  }
  return out;
}

}  // namespace

std::size_t Outcome::count(const RuleSet& rules, const std::string& written) const {
  return static_cast<std::size_t>(std::count_if(fired.begin(), fired.end(), [&](RuleId id) {
    return written_name(rules.rules[id]) == written;
  }));
}

std::optional<Outcome> run_on(const Graph& graph, const Reach& reach, const Strategy& strategy,
                              const Env& params, std::size_t most_rewrites) {
  RewriteOptions options;
  options.limits.rewrites = most_rewrites;
  options.limits.matcher_steps = kMatcherSteps;
  Outcome out{graph, StopReason::fixpoint, {}, {}};
  out.graph.forget_undo();
  Strategy fewer = strategy;
  fewer.rules = reach.of(graph);
  Result<RewriteReport> report = run_strategy(out.graph, reach.rules(), fewer, params, options);
  if (!report || gave_up(*report)) return std::nullopt;
  for (const PassStats& pass : report->passes)
    if (pass.stop != StopReason::fixpoint) out.stop = pass.stop;
  out.fired = report->journal.fired(reach.rules());
  for (const JournalEvent& event : report->journal)
    if (const auto* match = std::get_if<MatchEvent>(&event)) {
      out.first_matched = match->matched;
      break;
    }
  return out;
}

Strategy unconditional(Strategy strategy) {
  strategy.when.clear();
  strategy.ensures.clear();
  return strategy;
}

Application applicable(const Analysis& analysis, const RulePass& pass, const Reach& reach,
                       const Graph& graph, const std::string& test) {
  Application out{*pass.strategy, "", pass.owner};
  if (pass.is_owner && pass.strategy->when.empty() && pass.strategy->ensures.empty()) return out;
  out.name = test + "_pass";
  out.strategy = unconditional(std::move(out.strategy));
  out.strategy.label = out.name;
  std::set<std::string> names;
  for (RuleId id : reach.of(graph)) names.insert(written_name(analysis.rules.rules[id]));
  std::set<RuleId> ids;
  for (const std::string& name : names)
    for (RuleId id : analysis.index.resolve(name)) ids.insert(id);
  out.strategy.rules.assign(ids.begin(), ids.end());
  out.text = fmt::format("pass {} = {} {{ {} }}", out.name, word(pass.strategy->kind),
                         fmt::join(names, ", "));
  out.text += pass.strategy->fuel ? fmt::format(" fuel {}\n", *pass.strategy->fuel) : "\n";
  return out;
}

std::optional<Outcome> run_applied(const Analysis& analysis, const Application& applied,
                                   const Reach& reach, const Graph& graph, const Env& params) {
  if (applied.text.empty()) return run_on(graph, reach, applied.strategy, params);
  return run_on(graph, analysis.reach(applied.strategy.rules), applied.strategy, params);
}

std::string expected_count(const Outcome& outcome, const RuleSet& rules,
                           const std::string& written) {
  return fmt::format("{} == {}", written, outcome.count(rules, written));
}

std::string test_text(const std::string& name, const Graph& graph, const Application& applied,
                      const RuleSet& rules, const Env& params,
                      const std::vector<std::string>& expectations) {
  std::string body = print_pwg(graph);
  body = "graph " + body.substr(body.find('{'));
  std::string out = applied.text + "test " + name + " {\n";
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = body.find('\n', at);
    out += "  " + body.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out + fmt::format("  apply {}{}\n  expect {}\n}}\n", applied.name,
                           with_params(rules, params), fmt::join(expectations, ", "));
}

std::uint64_t hash_of_terms(const Graph& graph) {
  const Context& context = graph.context();
  std::vector<std::uint64_t> values(graph.value_bound());
  for (std::size_t i = 0; i < graph.inputs().size(); ++i)
    values[graph.inputs()[i].index] = mix(i + 1);
  std::uint64_t nodes = 0;  // a sum: the order of independent nodes does not count
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
    std::uint64_t h = combine(hash_text(graph.op_of(n).name),
                              hash_text(context.attributes.print(graph.attributes(n))));
    std::vector<std::uint64_t> operands;
    for (ValueId v : graph.operands(n)) operands.push_back(v.valid() ? values[v.index] : 0);
    if (graph.op_of(n).traits.commutative && operands.size() >= 2 && operands[1] < operands[0])
      std::swap(operands[0], operands[1]);
    for (std::uint64_t operand : operands) h = combine(h, operand);
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      values[graph.result(n, i).index] = combine(h, i + 1);
    nodes += mix(h);
  }
  for (ValueId v : graph.outputs()) nodes = combine(nodes, values[v.index]);
  return nodes;
}

std::map<std::string, std::size_t> op_counts(const Graph& graph) {
  std::map<std::string, std::size_t> out;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) ++out[graph.op_of(n).name];
  return out;
}

}  // namespace pw
