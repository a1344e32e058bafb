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
  // Since a is x, b is what a is: of one form, which is told once.
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
