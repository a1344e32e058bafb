// How good the graph that `saturate` keeps is: against the optimum worked out by hand, against
// greedy with the same rules, and what it reports where a limit ends it.
#include <algorithm>

#include <fmt/format.h>

#include "tests/rewriter/saturated.hpp"

using namespace pw;
using namespace pw::test;
using Catch::Matchers::Contains;

namespace {

std::string chain_of_layers(int layers) {
  std::string text =
      "in x: bf16[n, 64], w: bf16[64], m: bf16[64, 128], v: bf16[64, 64]  r0 = relu(x)";
  for (int i = 0; i < layers; ++i)
    text += fmt::format(
        "\n a{0} = add(x, r{0})  y{0} = rms_norm(a{0}, w){{eps = 1e-5}}  h{0} = mm(y{0}, m)"
        "\n g{0}, u{0} = split(h{0}){{dim = 1, sizes = [64, 64]}}  s{0} = mul(silu(g{0}), u{0})"
        "\n d{0} = detach(s{0})  r{1} = mm(neg(neg(d{0})), v)",
        i, i + 1);
  return text + fmt::format("\n out r{}", layers);
}

constexpr const char* kLayerRules = R"(
rule add_rms {
  r = add(x: T[*b, d], res: T[*b, d])
  y = rms_norm(r, w: T[d]){eps}
  => y, r = fused_add_rms_norm(x, res, w){eps}
}
rule silu_mul { g, u = split(gu: T[*b, 2 * d]){dim = -1, sizes = [d, d]}  y = mul(silu(g), u)
  => y = silu_and_mul(gu) }
rule nothing { y = detach(x)  => y = x }
rule twice { y = neg(neg(x))  => y = x }
pass s = saturate { add_rms, silu_mul, nothing, twice } cost nodes
)";

}  // namespace

TEST_CASE("saturate: two results of one op are chosen together if neither alone is a gain",
          "[saturate]") {
  World world(R"(
op both(x: T[*s]) -> (p: T[*s], q: T[*s])
rule pair { p = sin(x)  q = cos(x)  => p, q = both(x) }
pass s = saturate { pair }
)");
  Graph g = world.graph("in x: f32[n]  a = sin(x)  b = cos(x)  y = add(a, b)  out y");
  const RewriteReport report = world.run(g, "s");
  CHECK(g.node_count() == 2);
  CHECK(count(g, "both") == 1);
  CHECK(saturated(report).exact);
  CHECK(saturated(report).cost == 2);
}

TEST_CASE("saturate: sibling products become one op of two results", "[saturate]") {
  World world(R"(
op mm2(x: T[m, k], w: T[k, n], v: T[k, n]) -> (p: T[m, n], q: T[m, n])
rule siblings { p = mm(x, w)  q = mm(x, v)  => p, q = mm2(x, w, v) }
pass s = saturate { siblings } cost bytes
)");
  Graph g = world.graph(R"(in x: f32[n, 64], w: f32[64, 64], v: f32[64, 64]
    p = mm(x, w)  q = mm(x, v)  y = mul(p, q)  out y)");
  const RewriteReport report = world.run(g, "s");
  CHECK(count(g, "mm2") == 1);
  CHECK(count(g, "mm") == 0);
  CHECK(saturated(report).exact);
}

TEST_CASE("saturate: outputs of a rule may have a weight or an equal value in common only",
          "[saturate]") {
  World world(R"(
op mm2(x: T[m, k], z: T[m, k], w: T[k, n]) -> (p: T[m, n], q: T[m, n])
op twin(x: T[*s]) -> (p: T[*s], q: T[*s])
rule nothing { y = detach(x)  => y = x }
rule stacked { p = mm(x, w)  q = mm(z, w)  => p, q = mm2(x, z, w) }
rule pair { p = sin(x)  q = cos(x)  => p, q = twin(x) }
pass s = saturate { nothing, stacked, pair } cost nodes
)");
  Graph g = world.graph(R"(in x: f32[n, 8], z: f32[n, 8], w: f32[8, 8]
    p = mm(x, w)  q = mm(z, w)  out p, q)");
  world.run(g, "s");
  CHECK(g.node_count() == 1);
  Graph h = world.graph("in x: f32[n]  a = relu(x)  p = sin(a)  q = cos(detach(a))  out p, q");
  world.run(h, "s");
  CHECK(h.node_count() == 2);
  CHECK(count(h, "twin") == 1);
}

TEST_CASE("saturate: a cover by ops of two results, which only several switches together reach",
          "[saturate]") {
  // Four pairs of one input each: eight nodes by four, and one that joins each two.
  World world(R"(
op both(x: T[*s]) -> (p: T[*s], q: T[*s])
op four(x: T[*s]) -> (p: T[*s], q: T[*s], r: T[*s], s: T[*s])
rule pair { p = sin(x)  q = cos(x)  => p, q = both(x) }
rule whole { p, q = both(x)  r = relu(x)  s = abs(x)  => p, q, r, s = four(x) }
pass s = saturate { pair, whole }
pass g = greedy { pair, whole }
)");
  const char* text = R"(in x: f32[n], z: f32[n]
    a = sin(x)  b = cos(x)  c = relu(x)  d = abs(x)
    e = sin(z)  f = cos(z)  g = relu(z)  h = abs(z)
    y = maximum(a, e)  out y, b, c, d, f, g, h)";
  Graph g = world.graph(text);
  world.run(g, "g");
  Graph h = world.graph(text);
  const RewriteReport report = world.run(h, "s");
  CHECK(h.node_count() == 3);
  CHECK(h.node_count() <= g.node_count());
  CHECK(saturated(report).exact);
}

TEST_CASE("saturate: in a graph with shared parts the sum of switches counts, not each by itself",
          "[saturate]") {
  // Six nodes. Each of the two switches alone makes the graph larger, and so do both together; only
  // with the third it has five nodes.
  World world(R"(
rule left  { y = sin(relu(x))  => y = neg(maximum(x, 0)) }
rule next  { y = cos(relu(x))  => y = tanh(maximum(x, 0)) }
rule short { y = add(neg(maximum(x, 0)), tanh(maximum(x, 0)))  => y = exp(maximum(x, 0)) }
pass s = saturate { left, next, short }
)");
  Graph g = world.graph(R"(in x: f32[n]
    r = relu(x)  a = sin(r)  b = cos(r)  y = add(a, b)  z = neg(y)  w = abs(z)  out w)");
  const RewriteReport report = world.run(g, "s");
  CHECK(g.node_count() == 5);  // the 0 of `maximum` is a node
  CHECK(saturated(report).exact);
  CHECK(saturated(report).bound == 5);
}

TEST_CASE("saturate: greedy never wins with the same rules", "[saturate]") {
  std::size_t better = 0, equal = 0;
  const auto look = [&](const World& world, const Graph& start) {
    Graph g = start, s = start;
    world.run(g, "g");
    const RewriteReport report = world.run(s, "s");
    REQUIRE(s.node_count() <= g.node_count());
    REQUIRE(s.node_count() <= start.node_count());
    const Saturated& found = saturated(report);
    REQUIRE(found.cost == static_cast<std::int64_t>(s.node_count()));
    REQUIRE(found.bound <= found.cost);
    better += s.node_count() < g.node_count() ? 1 : 0;
    equal += s.node_count() == g.node_count() ? 1 : 0;
  };
  const std::size_t runs = for_random_saturations(Mix::plain, 1000, 4, look);
  CHECK(runs == 1000);
  CHECK(better > 0);
  CHECK(equal > 0);
}

TEST_CASE("saturate: equal layers are chosen in once, and every layer is like the first",
          "[saturate]") {
  World world(kLayerRules);
  Graph one = world.graph(chain_of_layers(1)), many = world.graph(chain_of_layers(12));
  const RewriteReport alone = world.run(one, "s");
  const RewriteReport report = world.run(many, "s");
  CHECK(many.node_count() - 1 == 12 * (one.node_count() - 1));
  CHECK(saturated(report).exact);
  CHECK(saturated(report).stop == "complete");
  CHECK(saturated(report).parts - saturated(report).like_parts <= saturated(alone).parts + 1);
}

TEST_CASE("saturate: along a residual stream the choices of all layers are exact, in parts",
          "[saturate]") {
  // Each sum is read by the norm and by the next sum, so that a bound by prices alone is lost on
  // the way down.
  World world(kLayerRules);
  std::string text = "in x: bf16[n, 64], w: bf16[64], m: bf16[64, 64]  r0 = relu(x)  y0 = exp(x)";
  for (int i = 1; i <= 40; ++i)
    text += fmt::format(
        "\n h{0} = mm(y{1}, m)  r{0} = add(h{0}, r{1})"
        "\n y{0} = rms_norm(r{0}, w){{eps = 1e-5}}",
        i, i - 1);
  Graph g = world.graph(text + "\n out y40");
  const RewriteReport report = world.run(g, "s");
  CHECK(count(g, "fused_add_rms_norm") == 40);
  CHECK(saturated(report).exact);
  CHECK(saturated(report).bound == saturated(report).cost);
  CHECK(saturated(report).parts >= 40);
}

TEST_CASE("saturate: each limit is named, and what it left is counted by rule", "[saturate]") {
  World world(R"(
rule apart { y = mul(x, add(a, b))  => y = add(mul(x, a), mul(x, b)) }
rule joined { y = add(mul(x, a), mul(x, b))  => y = mul(x, add(a, b)) }
rule grouped { y = add(add(a, b), c)  => y = add(a, add(b, c)) }
rule turned { y = add(a, b)  => y = add(b, a) }
rule grow { y = relu(x)  => y = relu(sin(x)) }
pass few = saturate { apart, joined, grouped, turned } nodes 60
pass lots = saturate { apart, joined, grouped, turned }
pass short = saturate { grow } rounds 3
)");
  std::string text = "in x: f32[n], a0: f32[n]";
  for (int i = 1; i < 14; ++i)
    text += fmt::format("  a{} = mul(a{}, add(a{}, sin(x)))", i, i - 1, i - 1);
  Graph g = world.graph(text + "  out a13");
  RewriteReport report = world.run(g, "few");
  CHECK(saturated(report).stop == "nodes 60");
  CHECK_FALSE(saturated(report).left.empty());
  CHECK(saturated(report).bound <= saturated(report).cost);
  const auto warning = std::find_if(report.warnings.begin(), report.warnings.end(),
                                    [](const Diagnostic& d) { return d.code == "PW1116"; });
  REQUIRE(warning != report.warnings.end());
  CHECK_THAT(warning->message, Contains("limit of nodes 60") && Contains("`apart`"));
  const std::string bound = saturated(report).bound == saturated(report).cost
                                ? "the best of these"
                                : fmt::format("at least {}", saturated(report).bound);
  CHECK_THAT(warning->message, Contains(bound));

  Graph h = world.graph(text + "  out a13");
  report = world.run(h, "lots");
  CHECK_THAT(saturated(report).stop, Contains("nodes") || Contains("matches"));
  CHECK(report.passes.at(0).stop == StopReason::fuel);

  Graph k = world.graph("in x: f32[n]  y = relu(x)  out y");
  report = world.run(k, "short");
  CHECK(saturated(report).stop == "rounds 3");
  CHECK(saturated(report).left.at("grow") == 1);
}

TEST_CASE("saturate: a cost is a table of the rules", "[saturate]") {
  const std::string rules = R"(
param slow: int = 1
table time(cost) {
  sin: 5 * written
  mm: 2 * m * k * n
  relu: slow
  other: 1
}
rule there { y = sin(x)  => y = neg(relu(x)) }
rule product { y = mm(x, w)  => y = neg(mm(neg(x), w)) }
pass s = saturate { there, product } cost time
pass b = best of { greedy { there } | dce } by time
)";
  World world(rules);
  Graph g = world.graph("in x: f32[4, 8], w: f32[8, 2]  y = mm(sin(x), w)  out y");
  const RewriteReport report = world.run(g, "s");
  CHECK(saturated(report).by == "time");
  CHECK(saturated(report).before == 5 * 4 * 8 * 4 + 2 * 4 * 8 * 2);
  CHECK(saturated(report).cost == 1 + 1 + 2 * 4 * 8 * 2);
  CHECK(count(g, "sin") == 0);
  Graph h = world.graph("in x: f32[4, 8]  y = sin(x)  out y");
  CHECK(world.run(h, "b").choices.at(0).costs == std::vector<std::int64_t>{2, 640});
  world.params["slow"] = Binding(Attribute(std::int64_t{10'000}));
  Graph k = world.graph("in x: f32[4, 8]  y = sin(x)  out y");
  world.run(k, "s");
  CHECK(count(k, "sin") == 1);
  world.params["slow"] = Binding(Attribute(std::int64_t{-1}));
  const auto refused = world.try_run(k, "s");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().code == "PW1115");
}
