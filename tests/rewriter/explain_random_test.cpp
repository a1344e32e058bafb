// Explanations of random rules on random graphs, against the journal of a run that nobody watches.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

#include "rewriter/engine/apply.hpp"
#include "rewriter/explain/explain.hpp"
#include "tests/rewriter/random_graphs.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr std::array<const char*, 5> kPipelines{"in_turn", "sweeps", "undone", "choice", "rounds"};

/// The same rules in pipelines in which earlier passes take what later ones would match.
std::string with_pipelines(const RandomRules& rules) {
  const std::string first = "greedy { r0 } fuel 20";
  const std::string last = "greedy { r" + std::to_string(rules.rules.size() - 1) + " } fuel 1";
  return rules.text + "pass first = " + first + "\npass last = " + last +
         "\npipeline in_turn { first cse last dce fixpoint }\n"
         "pipeline sweeps { sweep single last }\n"
         "pass back = atomic (first ; last) ensures nodes < 12\n"
         "pipeline undone { back last first }\n"
         "pass cheaper = best of { first | last | (last ; first) } by nodes\n"
         "pipeline choice { cheaper fixpoint }\n"
         "pass again = repeat (last ; first) fuel 3\n"
         "pipeline rounds { again single }\n";
}

/// Step of a pass in the report of a run: a rule that erased nodes, or a built-in pass.
struct ReportStep {
  std::string name;
  std::vector<NodeId> matched, erased;
};
std::map<std::pair<std::string, std::size_t>, ReportStep> steps_of(const World& world,
                                                                   const Journal& journal) {
  std::map<std::pair<std::string, std::size_t>, ReportStep> out;
  std::string pass;
  std::size_t step = 0;
  const RunRules rules = journal.rules_of(world.rules);
  for (const JournalEvent& event : journal) {
    if (const auto* begin = std::get_if<PassBegin>(&event)) pass = begin->pass, step = 0;
    if (const auto* match = std::get_if<MatchEvent>(&event))
      out[{pass, ++step}] = {rules[match->rule].name, match->matched, match->erased};
    if (const auto* builtin = std::get_if<BuiltinEvent>(&event))
      for (NodeId n : builtin->erased) out[{pass, ++step}] = {builtin->pass, {}, {n}};
  }
  return out;
}

std::size_t standing_and_never_applied(const World& world, const Graph& graph, RuleId rule,
                                       const Journal& journal) {
  std::set<std::vector<NodeId>> applied;
  const auto sorted = [](std::vector<NodeId> nodes) {
    std::erase_if(nodes, [](NodeId n) { return !n.valid(); });
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  };
  for (const JournalEvent& event : journal)
    if (const auto* match = std::get_if<MatchEvent>(&event))
      if (match->rule == rule) applied.insert(sorted(match->matched));
  std::size_t out = 0;
  for (const Match& match : find_matches(graph, world.rules, rule, world.params))
    out += applied.contains(sorted(all_nodes(match))) ? 0 : 1;
  return out;
}

struct Totals {
  std::size_t taken = 0;
  std::set<std::string> met;
};

void check(const World& world, const Graph& graph, const std::string& rule,
           const std::string& pipeline, Totals& totals) {
  INFO(rule << " over " << pipeline);
  Graph copy = graph;
  const RewriteReport report = world.run(copy, pipeline);
  const auto steps = steps_of(world, report.journal);
  ExplainOptions options;
  options.pipeline = pipeline;
  options.most = std::numeric_limits<std::size_t>::max();
  const auto found = explain_rules(graph, world.rules, rule, world.params, options);
  if (!found) FAIL(render(found.error(), world.context->sources));
  const std::vector<RuleId> ids = world.rules.resolve(rule);
  CHECK(found->matches == report.journal.count(world.rules, rule));
  std::size_t complete = 0;
  for (const NearMissGroup& group : found->groups) {
    const NearMiss& miss = group.first;
    INFO(miss.why.code << ": " << miss.why.message);
    CHECK_FALSE(miss.why.code.empty());
    CHECK_FALSE(miss.why.message.empty());
    totals.met.insert(miss.why.code);
    complete += miss.complete ? group.count : 0;
    if (!miss.taken_by) continue;
    const auto step = steps.find({miss.taken_by->pass, miss.taken_by->step});
    REQUIRE(step != steps.end());
    CHECK(step->second.name == miss.taken_by->name);
    if (miss.why.code != "N10" || !miss.at) continue;
    const std::vector<NodeId>& erased = step->second.erased;
    CHECK(std::find(erased.begin(), erased.end(), miss.at->id) != erased.end());
    ++totals.taken;
  }
  const bool absent = found->groups.size() == 1 && !found->groups.front().first.at;
  if (absent) return;
  for (RuleId id : ids)
    if (world.rules.rules[id].name == rule && !world.rules.rules[id].frontier)
      CHECK(complete >= standing_and_never_applied(world, graph, id, report.journal));
}

void explain_random(std::uint64_t first, std::uint64_t count) {
  Totals totals;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const RandomRules rules = random_rules(seed);
    INFO("seed " << seed << "\n" << with_pipelines(rules));
    const World world(with_pipelines(rules));
    const Graph graph = random_graph(world, rules, seed);
    INFO(print_pwg(graph));
    for (const char* pipeline : kPipelines)
      for (std::size_t i = 0; i < rules.rules.size(); ++i)
        check(world, graph, "r" + std::to_string(i), pipeline, totals);
  }
  CHECK(12 * totals.taken > 5 * count);
  for (const char* code : {"N10", "N12", "N16", "N17"}) {
    INFO(code);
    CHECK(totals.met.contains(code));
  }
}

}  // namespace

TEST_CASE("explain: random rules and graphs, against the journal", "[rewriter]") {
  explain_random(1, 90);
}

TEST_CASE("explain: many random rules and graphs", "[.slow][rewriter]") { explain_random(91, 600); }
