// `saturate` with rules of lists, members, recursive patterns and `unless`: what is found up to
// equality, that it ends, and that greedy never wins.
#include <algorithm>

#include "tests/rewriter/saturated.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr const char* kSiblings = R"(
rule siblings {
  many y = mm(x, w: T[k, m])
  where count(y) >= 2
  =>
  z = mm(x, cat(w...){dim = 1})
  y... = split(z){dim = 1, sizes = [m...]}
}
rule nothing { y = detach(x)  => y = x }
table price(cost) {
  mm: 10
  other: 1
}
pass s = saturate { siblings, nothing } cost price
)";

}  // namespace

TEST_CASE("saturate: siblings of a value, and of values equal to it, become one", "[saturate]") {
  World world(kSiblings);
  Graph g = world.graph(R"(in x: f32[n, 64], q: f32[64, 32], k: f32[64, 8], v: f32[64, 8]
    a = mm(x, q)  b = mm(detach(x), k)  c = mm(detach(x), v)  out a, b, c)");
  const RewriteReport report = world.run(g, "s");
  require_same(g, world.graph(R"(in x: f32[n, 64], q: f32[64, 32], k: f32[64, 8], v: f32[64, 8]
    a, b, c = split(mm(x, cat(q, k, v){dim = 1})){dim = 1, sizes = [32, 8, 8]}  out a, b, c)"));
  CHECK(saturated(report).stop == "complete");  // the new product is not a sibling
  CHECK(report.journal.count(world.rules, "siblings") == 1);
}

TEST_CASE("saturate: a sibling that needs another stays out", "[saturate]") {
  World world(kSiblings);
  Graph g = world.graph(R"(in x: f32[16, 16], p: f32[16, 16], q: f32[16, 16]
    a = mm(x, p)  b = mm(x, relu(a))  c = mm(x, q)  out b, c)");
  world.run(g, "s");
  CHECK(count(g, "mm") == 2);
  CHECK(count(g, "relu") == 1);
}

TEST_CASE("saturate: siblings that are too dear stay", "[saturate]") {
  World world(std::string(kSiblings) + "pass n = saturate { siblings } cost nodes\n");
  Graph g = world.graph(R"(in x: f32[n, 64], q: f32[64, 32], k: f32[64, 8]
    a = mm(x, q)  b = mm(x, k)  out a, b)");
  world.run(g, "n");  // a cat, a product and a split are more than two products
  CHECK(count(g, "mm") == 2);
}

TEST_CASE("saturate: operands of a list are seen up to equality", "[saturate]") {
  World world(R"(
rule sink { y = cat(relu(x)...){dim}  => y = relu(cat(x...){dim}) }
rule there { y = maximum(x, 0)  => y = relu(x) }
rule flat { y = cat(a, cat(xs...){dim}, c){dim}  => y = cat(a, xs..., c){dim} }
rule nothing { y = detach(x)  => y = x }
rule twice { y = sub(cat(xs...){dim}, cat(xs...){dim})  => y = cat(neg(xs[0]), xs[0]){dim} }
pass s = saturate { sink, there, flat, nothing }
pass t = saturate { nothing, twice }
)");
  Graph g = world.graph(R"(in a: f32[n, 4], b: f32[n, 8], c: f32[n, 2]
    y = cat(relu(a), maximum(b, 0), detach(relu(c))){dim = 1}  out y)");
  const RewriteReport report = world.run(g, "s");
  require_same(g, world.graph(R"(in a: f32[n, 4], b: f32[n, 8], c: f32[n, 2]
    y = relu(cat(a, b, c){dim = 1})  out y)"));
  CHECK(saturated(report).exact);
  Graph h = world.graph(R"(in a: f32[n, 4], b: f32[n, 8], c: f32[n, 2]
    y = cat(a, detach(cat(b, relu(c)){dim = 1}), a){dim = 1}  out y)");
  world.run(h, "s");
  require_same(h, world.graph(R"(in a: f32[n, 4], b: f32[n, 8], c: f32[n, 2]
    y = cat(a, b, relu(c), a){dim = 1}  out y)"));
  // Two lists are one where their elements are equal.
  Graph k = world.graph(R"(in a: f32[n, 4]
    p = cat(a, detach(a)){dim = 1}  q = cat(detach(a), a){dim = 1}  y = sub(p, q)  out y)");
  const RewriteReport twice = world.run(k, "t");
  CHECK(saturated(twice).forms >= 4);
  CHECK(saturated(twice).cost <= 2);
}

TEST_CASE("saturate: a list of results, and as many on the right", "[saturate]") {
  World world(R"(
rule there { y = maximum(x, 0)  => y = relu(x) }
rule early { ps... = split(relu(relu(x))){..}  => ps... = split(relu(x)){..} }
pass s = saturate { there, early }
)");
  Graph g = world.graph(R"(in x: f32[n, 12]
    a, b, c = split(relu(maximum(x, 0))){dim = 1, sizes = [4, 4, 4]}  out c, a, b)");
  const RewriteReport report = world.run(g, "s");
  CHECK(report.journal.count(world.rules, "early") == 1);
  require_same(g, world.graph(R"(in x: f32[n, 12]
    a, b, c = split(relu(x)){dim = 1, sizes = [4, 4, 4]}  out c, a, b)"));
}

TEST_CASE("saturate: a recursive pattern is as deep as the graph", "[saturate]") {
  World world(R"(
pattern rec views(x) -> y { y = x | y = reshape(views(x)){..} }
rule r { f = relu(views(abs(x)))  =>  f = reshape(x){shape = f.shape} }
rule there { y = maximum(x, 0)  => y = relu(x) }
pass s = saturate { r, there }
pass g = greedy { r, there }
)");
  for (int depth : {0, 1, 3, 6}) {
    std::string text = "in x: f32[4, 6]  v0 = abs(x)";
    for (int i = 1; i <= depth; ++i)
      text +=
          fmt::format("  v{} = reshape(v{}){{shape = [{}]}}", i, i - 1, i % 2 == 1 ? "24" : "4, 6");
    Graph g = world.graph(text + fmt::format("  y = maximum(v{}, 0)  out y", depth));
    const RewriteReport report = world.run(g, "s");
    INFO(depth);
    CHECK(count(g, "relu") + count(g, "maximum") + count(g, "abs") == 0);
    CHECK(g.node_count() == 1);
    CHECK(saturated(report).stop == "complete");
  }
}

TEST_CASE("saturate: what `unless` names is looked for among all forms", "[saturate]") {
  World world(R"(
rule alone { y = relu(x)  unless { _ = neg(y) }  => y = sin(cos(x)) }
rule made { y = abs(x)  unless { x = add(a, b) }  => y = tanh(x) }
rule back { y = sin(cos(x))  => y = exp(x) }
rule there { y = maximum(x, 0)  => y = relu(x) }
rule nothing { y = detach(x)  => y = x }
table price(cost) {
  exp: 1
  tanh: 1
  other: 10
}
pass s = saturate { alone, back, there, nothing, made } cost price
)");
  const auto after = [&](const char* text, const char* op) {
    Graph g = world.graph(text);
    world.run(g, "s");
    return count(g, op);
  };
  CHECK(after("in x: f32[n]  y = maximum(x, 0)  out y", "exp") == 1);
  CHECK(after("in x: f32[n]  y = relu(x)  z = neg(y)  out y, z", "exp") == 0);
  CHECK(after("in x: f32[n]  y = detach(abs(x))  out y", "tanh") == 1);
  CHECK(after("in x: f32[n], z: f32[n]  a = add(x, z)  y = abs(detach(a))  out y", "tanh") == 0);
}

TEST_CASE("saturate: greedy never wins with rules of any form", "[saturate]") {
  std::size_t better = 0, made = 0;
  const auto look = [&](const World& world, const Graph& start) {
    Graph g = start, s = start, again = start;
    world.run(g, "g");
    const RewriteReport report = world.run(s, "s");
    world.run(again, "s");
    REQUIRE(print_pwg(again) == print_pwg(s));
    REQUIRE_FALSE(has_errors(verify(s)));
    REQUIRE(s.node_count() <= g.node_count());
    REQUIRE(s.node_count() <= start.node_count());
    REQUIRE(saturated(report).cost == static_cast<std::int64_t>(s.node_count()));
    better += s.node_count() < g.node_count() ? 1 : 0;
    for (const auto& [rule, stats] : report.passes.at(0).rules) made += stats.matches;
  };
  const std::size_t runs = for_random_saturations(Mix::all, 600, 3, look);
  CHECK(runs == 600);
  CHECK(better > 0);
  CHECK(made > 300);
}
