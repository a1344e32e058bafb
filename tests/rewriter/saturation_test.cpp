// Equality saturation: what no order of the rules finds, sharing, several results, limits.
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using namespace pw::test;
using Catch::Matchers::Contains;

TEST_CASE("saturate: the cheapest of all forms is kept, whatever order would lead there",
          "[rewriter]") {
  // The direct rewrite of b blocks the better one of a and b together, which needs c's form first.
  World world(R"(
rule direct { y = neg(relu(x))  => y = sin(x) }
rule detour { y = relu(x)  => y = maximum(x, 0) }
rule whole { y = abs(neg(maximum(x, 0)))  => y = cos(x) }
pass g = greedy { direct, detour, whole }
pass s = saturate { direct, detour, whole } cost nodes
)");
  const char* text = "in x: f32[n]  a = relu(x)  b = neg(a)  y = abs(b)  out y";
  Graph g = world.graph(text);
  world.run(g, "g");
  CHECK(g.node_count() == 2);
  Graph h = world.graph(text);
  RewriteReport report = world.run(h, "s");
  require_same(h, world.graph("in x: f32[n]  y = cos(x)  out y"));
  CHECK(report.passes.at(0).stop == StopReason::fixpoint);
  CHECK(report.journal.count(world.rules, "whole") == 1);
  CHECK(report.journal.count(world.rules, "direct") == 0);
  CHECK(h.value_name(h.outputs()[0]) == "y");
}

TEST_CASE("saturate: rules that undo each other come to an end", "[rewriter]") {
  World world(R"(
rule there { y = relu(x)  => y = maximum(x, 0) }
rule back { y = maximum(x, 0)  => y = relu(x) }
rule swap { y = add(a, b)  => y = add(b, a) }
pass s = saturate { there, back, swap }
)");
  Graph g = world.graph("in x: f32[n], w: f32[n]  a = relu(x)  b = relu(w)  y = add(a, b)  out y");
  const std::string before = print_pwg(g);
  RewriteReport report = world.run(g, "s");
  CHECK(report.passes.at(0).stop == StopReason::fixpoint);
  CHECK(print_pwg(g) == before);  // nothing is cheaper
  CHECK(report.journal.total() == 0);
}

TEST_CASE("saturate: what is used elsewhere counts once, and stays where it pays", "[rewriter]") {
  World world(R"(
rule fuse { y = neg(relu(x))  => y = sin(x) }
rule split { y = sin(x)  => y = neg(relu(x)) }
pass s = saturate { fuse, split } cost nodes
)");
  // relu is an output, so neg after it costs one node, as sin does; without, sin alone is cheaper.
  Graph g = world.graph("in x: f32[n]  a = relu(x)  b = neg(a)  c = sin(x)  out a, b, c");
  world.run(g, "s");
  CHECK(g.node_count() == 2);
  Graph h = world.graph("in x: f32[n]  a = relu(x)  b = neg(a)  out b");
  world.run(h, "s");
  require_same(h, world.graph("in x: f32[n]  b = sin(x)  out b"));
}

TEST_CASE("saturate: one node with two results replaces the two that made them", "[rewriter]") {
  World world(R"(
rule add_rms {
  r = add(x: T[*b, d], res: T[*b, d])
  y = rms_norm(r, w: T[d]){eps}
  => y, r = fused_add_rms_norm(x, res, w){eps}
}
pass s = saturate { add_rms } cost nodes
)");
  Graph g = world.graph(R"(in x: bf16[n, 64], res: bf16[n, 64], w: bf16[64]
    r = add(x, res)  y = rms_norm(r, w){eps = 1e-5}  z = relu(r)  out y, z)");
  RewriteReport report = world.run(g, "s");
  CHECK(g.node_count() == 2);
  CHECK(count(g, "add") == 0);
  CHECK(count(g, "fused_add_rms_norm") == 1);
  CHECK(report.journal.count(world.rules, "add_rms") == 1);
}

TEST_CASE("saturate: equal values can be seen through by patterns above them", "[rewriter]") {
  World world(R"(
rule inner { y = abs(neg(x))  => y = abs(x) }
rule outer { y = relu(abs(x))  => y = abs(x) }
rule nothing { y = detach(x)  => y = x }
pass s = saturate { inner, outer, nothing }
)");
  Graph g = world.graph(
      "in x: f32[n]  a = neg(x)  b = detach(a)  c = abs(b)  d = detach(c)  e = relu(d)  out e");
  world.run(g, "s");
  require_same(g, world.graph("in x: f32[n]  e = abs(x)  out e"));
}

TEST_CASE("saturate: an output that equals an input is that input", "[rewriter]") {
  World world("rule nothing { y = detach(x)  => y = x }\npass s = saturate { nothing }");
  Graph g = world.graph("in x: f32[n]  a = detach(x)  b = detach(a)  out b, x");
  RewriteReport report = world.run(g, "s");
  CHECK(g.node_count() == 0);
  // Since a is x, b is what a is: of one form, which is reported once.
  CHECK(report.journal.count(world.rules, "nothing") == 1);
}

TEST_CASE("saturate: limits of nodes and rounds end it, with a graph that is right", "[rewriter]") {
  World world(R"(
rule grow { y = relu(x)  => y = relu(sin(x)) }
rule merge { y = neg(neg(x))  => y = x }
pass nodes = saturate { grow, merge } nodes 50
pass rounds = saturate { grow, merge } rounds 2
)");
  for (const char* pass : {"nodes", "rounds"}) {
    Graph g = world.graph("in x: f32[n]  a = relu(x)  b = neg(a)  c = neg(b)  out c");
    RewriteReport report = world.run(g, pass);
    CHECK(report.passes.at(0).stop == StopReason::fuel);
    require_same(g, world.graph("in x: f32[n]  a = relu(x)  out a"));
  }
}

TEST_CASE("saturate: inside atomic and best of it is undone with the rest", "[rewriter]") {
  World world(R"(
rule merge { y = neg(neg(x))  => y = x }
rule other { y = neg(x)  => y = abs(sin(x)) }
pass a = atomic saturate { merge } ensures nodes == 7
pass b = best of { greedy { other } | saturate { merge } } by nodes
)");
  const char* text = "in x: f32[n]  a = neg(x)  b = neg(a)  c = relu(b)  out c";
  Graph g = world.graph(text);
  const std::string before = print_pwg(g);
  world.run(g, "a");
  CHECK(print_pwg(g) == before);
  Graph h = world.graph(text);
  RewriteReport report = world.run(h, "b");
  CHECK(h.node_count() == 1);
  CHECK(report.journal.count(world.rules, "merge") == 1);
  CHECK(report.journal.count(world.rules, "other") == 0);
}

TEST_CASE("saturate: an equivalence is applied in both directions", "[rewriter]") {
  World world(R"(
rule as_maximum { y = relu(x: f32[*s])  <=>  y = maximum(x, 0) }
rule negated { y = neg(maximum(x, 0))  => y = cos(x) }
rule absolute { y = abs(relu(x))  => y = sin(x) }
pass s = saturate { as_maximum, negated, absolute }
pass back = saturate { as_maximum[backward], negated }
)");
  // One needs the form to the right of the arrow, the other the one to its left.
  const char* text = R"(in x: f32[n], w: f32[n]
    a = neg(relu(x))  b = abs(maximum(w, 0))
    out a, b)";
  Graph g = world.graph(text);
  RewriteReport report = world.run(g, "s");
  require_same(g, world.graph("in x: f32[n], w: f32[n]  a = cos(x)  b = sin(w)  out a, b"));
  CHECK(report.passes.at(0).stop == StopReason::fixpoint);
  Graph h = world.graph(text);
  world.run(h, "back");
  CHECK(count(h, "cos") == 0);
  // Of the form that is kept, the direction that made it is counted.
  Graph k = world.graph("in x: f32[n]  y = maximum(x, 0)  out y");
  CHECK(world.run(k, "s").journal.count(world.rules, "as_maximum[backward]") == 1);
}

TEST_CASE("saturate: associative ops are seen in every grouping, under greedy in the written one",
          "[rewriter]") {
  const std::string rules = R"(
op minus(x: T[*s], y: T[*s]) -> T[*s]
rule cancel { y = add(x, neg(x))  => y = mul(x, 0) }
rule nothing { y = add(x, mul(z, 0))  => y = x }
rule apart { y = minus(x, minus(z, z))  => y = x }
)";
  World world(rules +
              "pass s = saturate { cancel, nothing, apart }\n"
              "pass g = greedy { cancel, nothing, apart }\n");
  for (const char* sum : {"y = (a + b) + neg(b)", "y = neg(b) + (b + a)", "y = b + (a + neg(b))",
                          "y = (b + a) + (neg(b) + (neg(c) + c))"}) {
    INFO(sum);
    const std::string text =
        std::string("in a: f32[n], b: f32[n], c: f32[n]  ") + sum + "  z = relu(y)  out z";
    Graph g = world.graph(text);
    world.run(g, "s");
    require_same(g, world.graph("in a: f32[n], b: f32[n], c: f32[n]  z = relu(a)  out z"));
    Graph greedy = world.graph(text);
    world.run(greedy, "g");
    CHECK(count(greedy, "add") > 0);
  }
  // `minus` is not declared to be associative.
  Graph other = world.graph("in a: f32[n], b: f32[n]  y = minus(minus(a, b), b)  out y");
  world.run(other, "s");
  CHECK(count(other, "minus") == 2);
}

TEST_CASE("saturate: no grouping computes what is between in a smaller dtype", "[rewriter]") {
  World world(R"(
rule cancel { y = add(x, neg(x))  => y = mul(x, 0) }
rule nothing { y = add(x, mul(z, 0))  => y = x }
pass s = saturate { cancel, nothing }
)");
  // b + neg(b) would be rounded to bf16 where it was added up in f32.
  Graph g = world.graph("in a: f32[n], b: bf16[n]  y = (a + b) + neg(b)  out y");
  world.run(g, "s");
  CHECK(count(g, "add") == 2);
  Graph wide = world.graph("in a: bf16[n], b: f32[n]  y = (f32(a) + b) + neg(b)  out y");
  world.run(wide, "s");
  CHECK(count(wide, "add") == 0);
}

TEST_CASE("saturate: many groupings end at the limit of nodes", "[rewriter]") {
  World world(
      "rule twice { y = add(x, x)  => y = mul(x, 2) }\npass s = saturate { twice } nodes 300");
  std::string text = "in x: f32[n], a0: f32[n]";
  for (int i = 1; i < 24; ++i)
    text += "  a" + std::to_string(i) + " = a" + std::to_string(i - 1) + " + " +
            (i % 2 == 0 ? "x" : "sin(x)");
  Graph g = world.graph(text + "  out a23");
  const RewriteReport report = world.run(g, "s");
  CHECK(report.passes.at(0).stop == StopReason::fuel);
  CHECK(verify(g).empty());
}

TEST_CASE("saturate: what was assumed for a form is a condition of the result", "[rewriter]") {
  World world(R"(
rule step { y = relu(x: f32[n, d])  assume n % 4 == 0  => y = sin(x) }
rule on { y = neg(sin(x))  => y = cos(x) }
pass s = saturate { step, on }
)");
  // The result has no node that `step` made, and still holds only where its assumption does.
  Graph g = world.graph("in x: f32[n, 8]  y = neg(relu(x))  out y");
  const RewriteReport report = world.run(g, "s");
  CHECK(count(g, "cos") == 1);
  REQUIRE(report.conditions.size() == 1);
  CHECK(report.conditions[0].text == "n % 4 == 0");
  CHECK(g.facts.find("n")->multiple == 4);
  Graph kept = world.graph("in x: f32[n, 8]  y = relu(x)  out y");
  CHECK(world.run(kept, "s").conditions.empty());
}
