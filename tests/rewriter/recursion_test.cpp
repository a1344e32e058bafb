// Recursive patterns, fused left sides and equivalences, applied to graphs.
#include "dsl/run_rules.hpp"
#include "graph/build.hpp"
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr const char* kViews = R"(
pattern rec views(x) -> y { y = x | y = reshape(views(x)){..} }
rule r { f = relu(views(abs(x)))  =>  f = reshape(neg(x)){shape = f.shape} }
rule low over r { f = relu(reshape(x){..})  =>  f = maximum(reshape(x){shape = f.shape}, 0) }
)";

/// abs, `depth` reshapes, relu.
std::string chain(int depth) {
  std::string text = "in x: f32[4, 6]  a0 = abs(x)";
  for (int i = 0; i < depth; ++i)
    text += "  a" + std::to_string(i + 1) + " = reshape(a" + std::to_string(i) + "){shape = [" +
            (i % 2 == 0 ? "24" : "4, 6") + "]}";
  return text + "  y = relu(a" + std::to_string(depth) + ")  out y";
}

}  // namespace

TEST_CASE("recursion: the matcher opens frontiers until none fits", "[rewriter]") {
  for (int depth : {0, 2, 3, 4, 9}) {
    INFO("depth " << depth);
    World world(kViews);
    const Graph g = world.graph(chain(depth));
    std::size_t found = 0, size = 0;
    RunRules rules(world.rules);
    for (RuleId id : opened_rules(g, rules, world.rules.resolve("r"), world.params)) {
      for (const Match& match : find_matches(g, rules, id, world.params)) {
        ++found;
        size = match.nodes.size();
      }
    }
    CHECK(found == 1);
    CHECK(size == static_cast<std::size_t>(depth) + 2);
  }
}

TEST_CASE("recursion: no frontier is opened that does not fit", "[rewriter]") {
  World world(kViews);
  const Graph g = world.graph(chain(2));
  RunRules rules(world.rules);
  CHECK(opened_rules(g, rules, world.rules.resolve("r"), world.params).size() == 3);
  CHECK(rules.size() == world.rules.rules.size());
}

TEST_CASE("recursion: a run goes to any depth, and is counted as the rule that was loaded",
          "[rewriter]") {
  for (int depth : {1, 3, 7}) {
    INFO("depth " << depth);
    World world(kViews);
    Graph g = world.graph(chain(depth));
    CHECK(world.fired(g, "r", "r") == 1);
    CHECK(count(g, "reshape") == 1);
  }
}

TEST_CASE("recursion: what the last rewrite made is looked at to any depth", "[rewriter]") {
  World world(std::string(kViews) + R"(
rule grow {
  y = sin(x: T[4, 6])
  =>
  a = reshape(reshape(abs(x)){shape = [24]}){shape = [4, 6]}
  b = reshape(reshape(a){shape = [24]}){shape = [4, 6]}
  y = relu(b)
}
pass p = greedy { grow, r }
)");
  Graph g = world.graph("in x: f32[4, 6]  y = sin(x)  out y");
  const RewriteReport report = world.run(g, "p");
  CHECK(report.journal.count(world.rules, "grow") == 1);
  CHECK(report.journal.count(world.rules, "r") == 1);
  CHECK(count(g, "reshape") == 1);
}

TEST_CASE("recursion: what stands over a rule stands over what it opens", "[rewriter]") {
  World world(kViews);
  const RuleId low = world.rule("low");
  RunRules rules(world.rules);
  std::size_t opened = 0;
  for (RuleId id : world.rules.resolve("r"))
    for (RuleId variant : rules.open(id, world.context)) {
      ++opened;
      CHECK(rules.is_over(low, variant));
      CHECK_FALSE(rules.is_over(variant, low));
    }
  CHECK(opened == 2);
}

TEST_CASE("fuse: the op computes what the pattern did", "[rewriter]") {
  World world(R"(
rule r { given { n = neg(x) }  h = sum(mul(n: f32[a, b], c)){dim = -1, keepdim}  y = relu(h)  =>  y = fuse }
)");
  Graph g = world.graph(
      "in x: f32[4, 6], c: f32[6]  n = neg(x)  h = sum(mul(n, c)){dim = 1, keepdim = true}  "
      "y = relu(h)  out y, n");
  CHECK(world.fired(g, "r", "r") == 1);
  CHECK(count(g, "r") == 1);
  REQUIRE(inline_bodies(g));
  Graph plain = world.graph(
      "in x: f32[4, 6], c: f32[6]  n = neg(x)  "
      "h = sum(mul(n, c)){dim = 1, keepdim = true}  y = relu(h)  "
      "out y, n");
  REQUIRE(inline_bodies(plain));
  require_same(g, plain);
}

TEST_CASE("equivalence: each half undoes the other", "[rewriter]") {
  World world("rule r { y = sub(x, z)  <=>  y = add(x, neg(z)) }");
  const std::string text = "in x: f32[4], z: f32[4]  y = sub(x, z)  out y";
  Graph g = world.graph(text);
  CHECK(world.fired(g, "r[forward]", "r") == 1);
  CHECK(count(g, "neg") == 1);
  CHECK(world.fired(g, "r[backward]", "r[backward]") == 1);
  require_same(g, world.graph(text));
  CHECK_FALSE(world.try_run(g, "r"));
}

TEST_CASE("types: equal under the facts is equal", "[rewriter]") {
  World world(R"(
rule r { y = relu(x: T[n, d])  =>  y = all_gather(shard(relu(x)){world = 2, group = "tp"}){world = 2, group = "tp"} }
pass p = once { r }
)");
  Graph even =
      world.graph("symbol n in 2..64 by 2  in x: f32[n, 4]  y = relu(x)  z = neg(y)  out z");
  CHECK(world.fired(even, "p", "r") == 1);
  const std::string text = print_pwg(even);
  Result<Graph> again = parse_graph(world.context, text, "again.pwg");
  REQUIRE(again);
  CHECK(print_pwg(*again) == text);
  Graph any = world.graph("symbol n in 2..64  in x: f32[n, 4]  y = relu(x)  out y");
  CHECK(world.fired(any, "p", "r") == 0);
}
