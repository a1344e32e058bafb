// Strategies that go back: atomic, repeat, best of, and what `ensures` states.
#include "rewriter/egraph/cost.hpp"
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using namespace pw::test;
using Catch::Matchers::Contains;

namespace {

std::vector<std::string> codes(const RewriteReport& report) {
  std::vector<std::string> out;
  for (const Diagnostic& d : report.warnings) out.push_back(d.code);
  return out;
}

using Codes = std::vector<std::string>;

}  // namespace

TEST_CASE("atomic: a promise that holds keeps the rewrites", "[rewriter]") {
  World world(R"(
rule a { y = relu(x)  => y = neg(x) }
pass p = atomic greedy { a } ensures count(relu) == 0 and nodes == 2
)");
  Graph g = world.graph("in x: f32[n]  y = relu(x)  z = relu(y)  out z");
  RewriteReport report = world.run(g, "p");
  CHECK(report.journal.count(world.rules, "a") == 2);
  CHECK(report.passes.at(0).rewrites == 2);
  CHECK(codes(report).empty());
  CHECK(count(g, "neg") == 2);
}

TEST_CASE("atomic: a promise that fails leaves the graph, the counts and the history as they were",
          "[rewriter]") {
  World world(R"(
param most: int = 1
rule a { y = relu(x)  => y = neg(abs(x)) }
rule b { y = silu(x)  => y = sin(x) }
pass p = greedy { b } ; atomic (greedy { a } ; cse ; dce) ensures count(abs) <= most and nodes < 9
)");
  const char* text = R"(in x: f32[n]
    a = silu(x)  b = relu(a)  c = relu(b)  d = relu(a)  unneeded = sin(d)  out c, d)";
  Graph g = world.graph(text);
  world.run(g, "b");
  const std::string before = print_pwg(g);
  RewriteReport report = world.run(g, "p");
  CHECK(print_pwg(g) == before);
  CHECK(report.journal.total() == 0);
  CHECK(report.passes.at(1).rewrites == 0);
  CHECK(report.passes.at(1).stop == StopReason::undone);
  REQUIRE(codes(report) == Codes{"PW1107", "PW1110"});  // the second is of the first pass
  // cse merges the two that read a: two are left of three. Six nodes, less d's twin and `unneeded`.
  CHECK_THAT(report.warnings[0].message,
             Contains("does not hold") && Contains("count(abs) is 2") && Contains("most is 1"));
  world.params = *bind_params(world.rules, {{"most", "2"}});
  Graph h = world.graph(text);
  RewriteReport kept = world.run(h, "p");
  CHECK(codes(kept).empty());
  CHECK(count(h, "abs") == 2);
}

TEST_CASE("atomic: what is undone costs no fuel, and passes behind it see the old graph",
          "[rewriter]") {
  World world(R"(
rule a { y = relu(x)  => y = neg(x) }
rule c { y = relu(x)  => y = cos(x) }
pass undone = atomic greedy { a } ensures count(neg) == 1
pass p = (undone ; greedy { c }) fuel 2
)");
  Graph g = world.graph("in x: f32[n]  y = relu(x)  z = relu(y)  out z");
  RewriteReport report = world.run(g, "p");
  CHECK(count(g, "cos") == 2);
  CHECK(report.journal.count(world.rules, "a") == 0);
  CHECK(report.journal.count(world.rules, "c") == 2);
}

TEST_CASE("ensures: without atomic it is a check that warns", "[rewriter]") {
  World world(R"(
rule a { y = relu(x)  => y = neg(x) }
pass p = greedy { a } ensures count(neg) == 0
pipeline q { greedy { a } ; dce ensures count(neg) == 0 }
pipeline r { p ensures nodes == 1 }
)");
  const char* text = "in x: f32[n]  y = relu(x)  out y";
  for (const char* pass : {"p", "q"}) {
    Graph g = world.graph(text);
    RewriteReport report = world.run(g, pass);
    CHECK(count(g, "neg") == 1);
    REQUIRE_FALSE(report.warnings.empty());
    CHECK(report.warnings[0].code == "PW1108");
    CHECK_THAT(report.warnings[0].message, Contains("count(neg) is 1"));
  }
  Graph g = world.graph(text);
  CHECK(codes(world.run(g, "r")) == Codes{"PW1108"});  // of p; the one of r holds
}

TEST_CASE("ensures: of a whole pipeline stands behind its last pass", "[rewriter]") {
  World world(R"(
rule a { y = relu(x)  => y = neg(x) }
rule b { y = neg(x)  => y = cos(x) }
pass p = (greedy { a } ; greedy { b }) ensures count(neg) == 0
pass q = (greedy { a } ; greedy { b }) ensures count(cos) == 0
)");
  Graph g = world.graph("in x: f32[n]  y = relu(x)  out y");
  CHECK(codes(world.run(g, "p")).empty());
  Graph h = world.graph("in x: f32[n]  y = relu(x)  out y");
  CHECK(codes(world.run(h, "q")) == Codes{"PW1108"});
}

TEST_CASE("repeat: until a round changes nothing; its fuel counts rounds", "[rewriter]") {
  World world(R"(
rule up { y = relu(relu(x))  => y = silu(x) }
rule over { y = silu(x)  => y = relu(x) }
pass all = repeat (once { up } ; once { over })
pass two = repeat (once { up } ; once { over }) fuel 2
pass fueled = repeat (greedy { up } fuel 1 ; greedy { over })
)");
  const char* eight = R"(in x: f32[n]  a = relu(x)  b = relu(a)  c = relu(b)  d = relu(c)
    e = relu(d)  f = relu(e)  g = relu(f)  h = relu(g)  out h)";
  Graph g = world.graph(eight);
  RewriteReport report = world.run(g, "all");
  CHECK(g.node_count() == 1);  // 8, 4, 2, 1: each round halves
  CHECK(report.journal.count(world.rules, "up") == 4 + 2 + 1);
  CHECK(report.passes.at(0).stop == StopReason::fixpoint);
  Graph h = world.graph(eight);
  CHECK(world.run(h, "two").passes.at(0).stop == StopReason::fuel);
  CHECK(h.node_count() == 2);
  Graph i = world.graph(eight);  // each round restores the fuel of a part
  CHECK(world.fired(i, "fueled", "up") == 7);
}

TEST_CASE("repeat: rounds that bring back an old graph are a cycle, and its rules are named",
          "[rewriter]") {
  World world(R"(
rule there { y = relu(x)  => y = silu(x) }
rule on { y = silu(x)  => y = neg(x) }
rule home { y = neg(x)  => y = relu(x) }
pass p = repeat once { there, on, home }
)");
  Graph g = world.graph("in x: f32[n]  y = relu(x)  out y");
  RewriteReport report = world.run(g, "p");
  CHECK(report.passes.at(0).stop == StopReason::cycle);
  REQUIRE(codes(report) == Codes{"PW1103"});
  CHECK_THAT(report.warnings[0].message, Contains("`home` → `there` → `on` → `home`"));
}

TEST_CASE("best of: the cheapest is kept, the first of equals, and the others leave no trace",
          "[rewriter]") {
  World world(R"(
rule longer { y = relu(x)  => y = neg(abs(x)) }
rule shorter { y = relu(relu(x))  => y = cos(x) }
rule other { y = relu(x)  => y = sin(x) }
pass first = best of { greedy { shorter } | greedy { longer } } by nodes
pass last = best of { greedy { longer } | greedy { other } ; dce | greedy { shorter } } by nodes
pass equal = best of { greedy { longer } | greedy { other } | dce } by nodes
)");
  const char* text = "in x: f32[n]  y = relu(x)  z = relu(y)  out z";
  for (const char* pass : {"first", "last"}) {
    Graph g = world.graph(text);
    RewriteReport report = world.run(g, pass);
    CHECK(count(g, "cos") == 1);
    CHECK(g.node_count() == 1);
    CHECK(report.journal.total() == 1);
    CHECK(report.journal.count(world.rules, "longer") == 0);
    CHECK(report.passes.at(0).rewrites == 1);
  }
  Graph g = world.graph(text);
  RewriteReport report = world.run(g, "equal");
  CHECK(count(g, "sin") == 2);
  REQUIRE(report.choices.size() == 1);
  CHECK(report.choices[0].costs == std::vector<std::int64_t>{4, 2, 2});
  CHECK(report.choices[0].chosen == 1);
}

TEST_CASE("best of: bytes decide where nodes do not", "[rewriter]") {
  World world(R"(
rule late { y = f32(relu(x: bf16[*s]))  => y = relu(f32(x)) }
rule same { y = f32(relu(x: bf16[*s]))  => y = f32(abs(x)) }
pass by_nodes = best of { greedy { late } | greedy { same } } by nodes
pass by_bytes = best of { greedy { late } | greedy { same } } by bytes
)");
  // Per element: relu 2+2 and cast 2+4; against cast 2+4 and relu 4+4.
  const char* text = "in x: bf16[4, 8]  h = relu(x)  y = f32(h)  out y";
  Graph g = world.graph(text);
  CHECK(cost_of(g, Cost::bytes) == 32 * (4 + 6));
  world.run(g, "by_nodes");
  CHECK(count(g, "relu") == 1);
  CHECK(cost_of(g, Cost::bytes) == 32 * (6 + 8));
  Graph h = world.graph(text);
  world.run(h, "by_bytes");
  CHECK(count(h, "abs") == 1);
}

TEST_CASE("best of: atomic alternatives and alternatives that are best of something",
          "[rewriter]") {
  World world(R"(
rule a { y = relu(x)  => y = sin(x) }
rule b { y = relu(relu(x))  => y = cos(x) }
pass undone = best of { atomic greedy { b } ensures count(relu) == 1 | greedy { a } } by nodes
pass nested = best of { greedy { a } | best of { greedy { a } | greedy { b } } by nodes } by nodes
)");
  const char* text = "in x: f32[n]  y = relu(x)  z = relu(y)  out z";
  Graph g = world.graph(text);
  RewriteReport report = world.run(g, "undone");
  CHECK(count(g, "relu") == 2);  // 2 nodes against 2: the first, of which nothing is left
  CHECK(report.journal.total() == 0);
  Graph h = world.graph(text);
  RewriteReport nested = world.run(h, "nested");
  CHECK(count(h, "cos") == 1);
  CHECK(nested.journal.total() == 1);
  CHECK(nested.choices.size() == 2);
}

TEST_CASE("cost: views and constants compute nothing, symbols count their largest size",
          "[rewriter]") {
  World world("");
  Graph g = world.graph(R"(symbol n in 1..100 by 8 tokens
    in x: f32[n, 4], w: f32[4]
    a = reshape(x){shape = [4, n]}
    b = reshape(a){shape = [n, 4]}
    c = add(b, w)
    d = mul(c, c)
    out d)");
  CHECK(cost_of(g, Cost::nodes) == 4);
  CHECK(cost_of(g, Cost::ops) == 2);
  // n is 96: c reads b and w and writes itself; d reads c once and writes itself.
  CHECK(cost_of(g, Cost::bytes) == 4 * (96 * 4 + 4 + 96 * 4) + 4 * (96 * 4 + 96 * 4));
}

TEST_CASE("idle: a rule that never fired is reported with the results of its attempts",
          "[rewriter]") {
  World world(R"(
rule fires { y = relu(x)  => y = sin(x) }
rule fails { y = neg(x: bf16[*s])  => y = abs(x) }
rule absent { y = silu(x)  => y = cos(x) }
pass p = greedy { fires, fails, absent }
)");
  Graph g = world.graph("in x: f32[n]  a = relu(x)  b = neg(a)  c = neg(b)  out c");
  RewriteOptions options;
  options.stats = true;
  RewriteReport report = world.run(g, "p", options);
  REQUIRE(codes(report) == Codes{"PW1111", "PW1111"});
  CHECK_THAT(report.warnings[0].message, Contains("`absent`"));
  CHECK(report.warnings[0].notes ==
        Codes{"no node of the graph has the op its pattern starts from"});
  CHECK_THAT(report.warnings[1].message, Contains("`fails`"));
  CHECK_THAT(report.warnings[1].notes.at(0), Contains("rejected by N05 × "));
  CHECK(is_idle_warning(report.warnings[0]));
}
