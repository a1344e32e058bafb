// Tests of what bounds the analysis: pairs that are counted without a comparison, rules that are
// found without a query, patterns that overlap in part.
#include "rewriter/analysis/meetings.hpp"

#include <fmt/format.h>

#include "rewriter/analysis/superpose.hpp"
#include "tests/rewriter/fixture.hpp"
#include "tests/rewriter/random_rules.hpp"

using namespace pw;
using pw::test::World;

namespace {

bool share_an_op(const Rule& a, const Rule& b) {
  for (const PatternNode& one : a.nodes)
    for (const PatternNode& other : b.nodes)
      if (one.own() && other.own() && one.op == other.op) return true;
  return false;
}

bool is_over(const RuleSet& rules, RuleId a, RuleId b) {
  const auto& ids = rules.rules[a].over;
  return std::find(ids.begin(), ids.end(), b) != ids.end();
}

/// By going through all pairs.
std::size_t count_pairs(const RuleSet& rules, const std::vector<RuleId>& a,
                        const std::vector<RuleId>& b, bool same) {
  std::size_t out = 0;
  for (RuleId i : a)
    for (RuleId j : b)
      if ((!same || i == j) && share_an_op(rules.rules[i], rules.rules[j]) &&
          !is_over(rules, i, j) && !is_over(rules, j, i))
        ++out;
  return out;
}

void require_counted(const World& world) {
  AnalysisReport report;
  Analysis analysis(world.rules, world.params, report);
  for (const RulePass& pass : rule_passes(world.rules)) {
    const Variants variants = variants_of(analysis, pass);
    const Meetings meetings(world.rules, variants);
    REQUIRE(meetings.rules() == variants.size());
    std::vector<std::vector<RuleId>> ids;
    for (const auto& [name, some] : variants) ids.push_back(some);
    std::vector<std::size_t> from(ids.size() + 1);
    for (std::size_t a = ids.size(); a-- > 0;) {
      const std::vector<std::size_t> partners = meetings.partners(a);
      from[a] = from[a + 1];
      for (std::size_t b = a; b < ids.size(); ++b) {
        const std::size_t right = count_pairs(world.rules, ids[a], ids[b], a == b);
        CHECK(meetings.pairs(a, b) == right);
        if (right > 0) CHECK(std::count(partners.begin(), partners.end(), b) == 1);
        from[a] += right;
      }
      CHECK(meetings.pairs_from(a) == from[a]);
    }
  }
}

/// Everything that a rule matches is in the graph or built by another such rule; found by trying
/// all rules.
std::vector<RuleId> reached(const RuleSet& rules, const IdVec<RuleId, RuleOps>& ops,
                            const std::vector<RuleId>& ids, const Graph& graph) {
  std::set<OpId> there;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) there.insert(graph.op(n));
  std::set<RuleId> kept;
  for (bool more = true; more;) {
    more = false;
    for (RuleId id : ids) {
      const auto known = [&](OpId op) { return there.contains(op); };
      if (rules.rules[id].frontier) return ids;
      if (kept.contains(id) || !std::ranges::all_of(ops[id].matched, known)) continue;
      more = kept.insert(id).second;
      there.insert(ops[id].built.begin(), ops[id].built.end());
    }
  }
  std::vector<RuleId> out;
  std::ranges::copy_if(ids, std::back_inserter(out), [&](RuleId id) { return kept.contains(id); });
  return out;
}

std::string chain(std::size_t length, const std::string& op) {
  std::string out = "a0 = " + op + "(x: T[*s])\n";
  for (std::size_t i = 1; i < length; ++i) out += fmt::format("a{} = {}(a{})\n", i, op, i - 1);
  return out;
}

}  // namespace

TEST_CASE("meetings: pairs are counted as going through them counts them", "[analysis]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    require_counted(World(pw::test::random_rules(seed, pw::test::Mix::plain).text));
  }
}

TEST_CASE("meetings: variants, over, and rules of no common op", "[analysis]") {
  require_counted(World(R"(
rule a over b { y = relu(cast?(neg(cast?(x)))) => y = neg(x) }
rule b { y = relu(cast?(x)) => y = neg(x) }
rule c { y = exp(x) => y = tanh(x) }
rule d over c { y = exp(neg(x)) => y = tanh(x) }
pass p = greedy { a, b, c, d }
)"));
}

TEST_CASE("reach: the rules that may come to match, as asking all of them finds them",
          "[analysis]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    const World world(pw::test::random_rules(seed, pw::test::Mix::plain).text);
    const IdVec<RuleId, RuleOps> ops = ops_of_rules(world.rules);
    for (const RulePass& pass : rule_passes(world.rules)) {
      const Reach reach(world.rules, ops, pass.strategy->rules);
      for (const char* body :
           {"in x: f32[n] y = relu(x) out y", "in x: f32[n] y = x + x out y",
            "in x: f32[n] y = neg(exp(x)) z = x * y out y, z", "in x: f32[n] out x"}) {
        const Graph graph = world.graph(body);
        CHECK(reach.of(graph) == reached(world.rules, ops, pass.strategy->rules, graph));
      }
    }
  }
}

TEST_CASE("superpose: large patterns are followed as far as the steps allow", "[analysis]") {
  World world("rule deep { " + chain(200, "relu") + " y = neg(a199) => y = abs(x) }" +
              "rule flat { y = relu(relu(x)) => y = relu(x) }");
  const RuleId deep = world.rule("deep"), flat = world.rule("flat");
  const Superpositions some = superpose(world.rules, deep, deep, {16, 5000});
  CHECK(!some.complete);
  CHECK(some.steps <= 5000 + 402);
  const Superpositions all = superpose(world.rules, flat, flat, {16, 5000});
  CHECK(all.complete);
  CHECK(all.ways.size() == 1);
  CHECK(all.steps < 100);
}

TEST_CASE("analysis: a step of commutative operands in every order ends", "[analysis]") {
  std::string text = "rule sums { ", layer = "a";
  for (std::size_t i = 0; i < 64; ++i) text += fmt::format("a{} = add(x{}, z{})\n", i, i, i);
  for (std::size_t count = 32; count > 0; count /= 2, layer += "a")
    for (std::size_t i = 0; i < count; ++i)
      text +=
          fmt::format("{} = add({}{}, {}{})\n", count == 1 ? "y" : fmt::format("{}a{}", layer, i),
                      layer, 2 * i, layer, 2 * i + 1);
  World world(text +
              "=> y = neg(x0) }\nrule other { y = abs(add(x, z)) => y = neg(x) }\n"
              "pass p = greedy { sums, other }");
  const AnalysisReport report = analyse(world.rules, world.params);
  CHECK(report.pairs + report.left_out == 3);
}
