// Random graphs: the worklist must leave nothing that the matcher still finds, keep the graph well
// formed, and be undone by a rollback.
#include "base/hash.hpp"
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr const char* kRandomRules = R"(
op pair(x: T[*s]) -> (p: T[*s], q: T[*s])
op both(x: T[*s], z: T[*s]) -> (p: T[*s], q: T[*s])
rule merge { y = relu(relu(x))  => y = relu(x) }
rule twice { y = neg(neg(x))  => y = x }
rule sum_up { given { h = neg(z) }  y = add(x, h)  => y = sub(x, z) }
rule difference { y = sub(x, neg(z))  => y = add(x, z) }
rule siblings { p = relu(x)  q = abs(x)  => p, q = pair(x) }
rule stacked { p, q = pair(x)  y = relu(p)  => y, q = pair(x) }
rule product { y = mul(abs(x), abs(z))  => y = abs(mul(x, z)) }
rule far { p = sin(x)  q = cos(z)  y = add(p, q)  => p, q = both(x, z)  y = maximum(p, q) }
pass all = greedy { merge, twice, sum_up, difference, siblings, stacked, product, far } fuel 1000000
)";

Graph random_graph(const World& world, std::uint64_t seed, std::size_t size) {
  Random random(seed);
  Graph g(world.context);
  TypeId type = world.context->types.get(DType::f32, {world.context->dims.constant(8)});
  std::vector<ValueId> values{g.add_input("a", type, InputKind::input),
                              g.add_input("b", type, InputKind::input)};
  const char* ops[] = {"relu", "neg", "abs", "sin", "cos", "add", "sub", "mul"};
  for (std::size_t i = 0; i < size; ++i) {
    std::size_t which = random.below(std::size(ops));
    NodeSpec spec;
    spec.op = world.context->ops.find(ops[which]);
    for (std::size_t k = 0; k < (which < 5 ? 1u : 2u); ++k) {
      std::size_t near = std::min<std::size_t>(values.size(), 6);
      spec.operands.push_back(
          values[values.size() - 1 - random.below(random.below(4) == 0 ? values.size() : near)]);
    }
    spec.results = {{type, ""}};
    values.push_back(g.result(g.add_node(spec)));
  }
  for (std::size_t i = 0; i < 3; ++i) g.add_output(values[values.size() - 1 - i]);
  return g;
}

}  // namespace

TEST_CASE("random: greedy leaves no match, keeps the graph well formed, and can be undone",
          "[rewriter]") {
  World world(kRandomRules);
  std::size_t rewrites = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    Graph g = random_graph(world, seed, 10 + 2 * seed);
    std::string before = print_pwg(g);
    INFO(before);
    g.start_undo();
    Graph::Checkpoint start = g.checkpoint();
    RewriteReport report = world.run(g, "all");
    rewrites += report.journal.total();
    REQUIRE(report.passes.front().stop == StopReason::fixpoint);
    for (const Rule& rule : world.rules.rules) {
      INFO(rule.name);
      REQUIRE(world.matches(g, rule.name).empty());
    }
    std::string after = print_pwg(g);
    g.rollback(start);
    REQUIRE(print_pwg(g) == before);
    world.run(g, "all");
    CHECK(structural_hash(g) ==
          structural_hash(world.graph(
              after.substr(after.find('\n') + 1, after.rfind('}') - after.find('\n') - 1))));
  }
  CHECK(rewrites > 1000);
}
