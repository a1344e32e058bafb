// Strategies, their order, their ends, and what the report states.
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using namespace pw::test;
using Catch::Matchers::Contains;

namespace {

const PassStats& only_pass(const RewriteReport& report) {
  REQUIRE(report.passes.size() == 1);
  return report.passes.front();
}

bool warned(const RewriteReport& report, std::string_view code) {
  for (const Diagnostic& d : report.warnings)
    if (d.code == code) return true;
  return false;
}

}  // namespace

TEST_CASE(
    "driver: greedy goes on to the end, walk goes forward only, once sees only the input graph",
    "[rewriter]") {
  World world(R"(
rule merge { y = relu(relu(x))  => y = relu(x) }
rule plain { y = silu(x)  => y = relu(x) }
pass g = greedy { merge, plain } fuel 100
pass w = walk { merge, plain }
pass o = once { merge, plain }
)");
  const char* chain = "in x: f32[n]  a = relu(x)  b = relu(a)  c = relu(b)  d = relu(c)  out d";
  Graph g = world.graph(chain);
  CHECK(world.fired(g, "g", "merge") == 3);
  CHECK(g.node_count() == 1);
  Graph w = world.graph(chain);
  CHECK(world.fired(w, "w", "merge") == 3);
  Graph o = world.graph(chain);
  CHECK(world.fired(o, "o", "merge") == 2);
  CHECK(o.node_count() == 2);
  // The rewrite of b makes a match with a, which lies behind.
  const char* behind = "in x: f32[n]  a = relu(x)  b = silu(a)  out b";
  Graph g2 = world.graph(behind);
  CHECK(world.run(g2, "g").journal.total() == 2);
  Graph w2 = world.graph(behind);
  CHECK(world.run(w2, "w").journal.total() == 1);
}

TEST_CASE("driver: the smallest position goes first, then rank, and over turns it round",
          "[rewriter]") {
  const std::string rules = R"(
rule early { y = neg(abs(x))  => y = sin(x) }
)";
  const char* graph = "in x: f32[n]  a = abs(x)  b = neg(a)  c = relu(b)  out c";
  World plain(rules +
              "rule late { y = relu(neg(x))  => y = cos(x) }\npass p = greedy { early, late }");
  Graph g = plain.graph(graph);
  CHECK(plain.fired(g, "p", "early") == 1);
  CHECK(count(g, "sin") == 1);
  World turned(
      rules +
      "rule late over early { y = relu(neg(x))  => y = cos(x) }\npass p = greedy { early, late }");
  Graph h = turned.graph(graph);
  CHECK(turned.fired(h, "p", "late") == 1);
  CHECK(count(h, "cos") == 1);
  // What waited is still there when the rule above does not take it.
  Graph alone = turned.graph("in x: f32[n]  a = abs(x)  b = neg(a)  out b");
  CHECK(turned.fired(alone, "p", "early") == 1);
}

TEST_CASE("driver: of nested matches the one that consumes more wins", "[rewriter]") {
  World world(R"(
rule a_short { y = neg(x)  => y = sin(x) }
rule b_long { y = relu(neg(x))  => y = cos(x) }
pass p = greedy { a_short, b_long }
)");
  Graph g = world.graph("in x: f32[n]  a = neg(x)  b = relu(a)  out b");
  RewriteReport report = world.run(g, "p");
  CHECK(report.journal.count(world.rules, "b_long") == 1);
  CHECK(report.journal.count(world.rules, "a_short") == 0);
}

TEST_CASE("driver: the sum joins the norm before the quantisation does", "[rewriter]") {
  World world(R"(
rule add_rms {
  r = add(x: T[*b, d], res: T[*b, d])
  y = rms_norm(r, w: T[d]){eps}
  => y, r = fused_add_rms_norm(x, res, w){eps}
}
rule rms_quant {
  n = rms_norm(x: T[*b, d], w: T[d]){eps}
  q = static_scaled_fp8_quant(n, s: f32[1])
  => q = rms_norm_static_fp8_quant(x, w, s){eps}
}
rule add_rms_quant over rms_quant {
  y, r = fused_add_rms_norm(x: T[*b, d], res, w: T[d]){eps}
  q = static_scaled_fp8_quant(y, s: f32[1])
  => q, r = fused_add_rms_norm_static_fp8_quant(x, res, w, s){eps}
}
pass p = greedy { rms_quant, add_rms_quant, add_rms }
)");
  Graph g = world.graph(R"(in x: bf16[n, 4096], res: bf16[n, 4096], w: bf16[4096], s: f32[1]
    r = add(res, x)
    y = rms_norm(r, w){eps = 1e-5}
    q = static_scaled_fp8_quant(y, s)
    out q, r)");
  RewriteReport report = world.run(g, "p");
  CHECK(report.journal.count(world.rules, "add_rms") == 1);
  CHECK(report.journal.count(world.rules, "add_rms_quant") == 1);
  CHECK(report.journal.count(world.rules, "rms_quant") == 0);
  require_same(g, world.graph(R"(in x: bf16[n, 4096], res: bf16[n, 4096], w: bf16[4096], s: f32[1]
    q, r = fused_add_rms_norm_static_fp8_quant(res, x, w, s){eps = 1e-5}
    out q, r)"));
}

TEST_CASE("driver: sequence, when, and params", "[rewriter]") {
  World world(R"(
param tp: int = 1
rule a { y = relu(x)  => y = neg(x) }
rule b { y = neg(x)  => y = abs(x) }
pipeline p { greedy { a }  greedy { b } when tp > 1 }
)");
  Graph g = world.graph("in x: f32[n]  y = relu(x)  out y");
  RewriteReport report = world.run(g, "p");
  CHECK(count(g, "neg") == 1);
  REQUIRE(report.passes.size() == 2);
  CHECK_FALSE(report.passes[0].skipped);
  CHECK(report.passes[1].skipped);
  world.params = *bind_params(world.rules, {{"tp", "2"}});
  Graph h = world.graph("in x: f32[n]  y = relu(x)  out y");
  world.run(h, "p");
  CHECK(count(h, "abs") == 1);
}

TEST_CASE("driver: fuel stops a pass where it is", "[rewriter]") {
  World world("rule merge { y = relu(relu(x))  => y = relu(x) }\npass p = greedy { merge } fuel 2");
  Graph g = world.graph(
      "in x: f32[n]  a = relu(x)  b = relu(a)  c = relu(b)  d = relu(c)  e = relu(d)  out e");
  RewriteReport report = world.run(g, "p");
  CHECK(only_pass(report).stop == StopReason::fuel);
  CHECK(only_pass(report).rewrites == 2);
  CHECK(g.node_count() == 3);
}

TEST_CASE("driver: rules that undo each other are named", "[rewriter]") {
  World world(R"(
rule there { y = relu(x)  => y = silu(x) }
rule back { y = silu(x)  => y = relu(x) }
pass p = greedy { there, back } fuel 1000000
)");
  Graph g = world.graph("in x: f32[n]  y = relu(x)  z = neg(y)  out z");
  RewriteReport report = world.run(g, "p");
  CHECK(only_pass(report).stop == StopReason::cycle);
  CHECK(only_pass(report).rewrites < 1000);
  REQUIRE(warned(report, "PW1103"));
  for (const Diagnostic& d : report.warnings)
    if (d.code == "PW1103") CHECK_THAT(d.message, Contains("`back` → `there` → `back`"));
}

TEST_CASE("driver: a rule that builds what it matches ends at the limit", "[rewriter]") {
  World world(
      "rule grow { y = relu(x)  => y = relu(neg(x)) }\npass p = greedy { grow } fuel 1000000000");
  Graph g = world.graph("in x: f32[n]  y = relu(x)  out y");
  RewriteOptions options;
  options.limits.rewrites = 500;
  RewriteReport report = world.run(g, "p", options);
  CHECK(only_pass(report).stop == StopReason::limit);
  CHECK(only_pass(report).rewrites == 500);
  CHECK(warned(report, "PW1104"));
}

TEST_CASE("driver: a bad path that goes away later frees the match", "[rewriter]") {
  World world(R"(
op gemm2(x: T[n, k], v: T[k, m], w: T[k, m]) -> (a: T[n, m], b: T[n, m])
rule pair { a = mm(x, v)  b = mm(x, w)  => a, b = gemm2(x, v, w) }
rule drop { y = add(mul(z, 0), k)  => y = k }
pass p = greedy { pair, drop }
)");
  Graph g = world.graph(R"(in x: f32[8, 8], v: f32[8, 8], u: f32[8, 8]
    a = mm(x, v)
    t = a * 0 + u
    c = relu(t)
    w = neg(c)
    b = mm(x, w)
    z = a + b
    out z)");
  RewriteReport report = world.run(g, "p");
  CHECK(report.journal.count(world.rules, "drop") == 1);
  CHECK(report.journal.count(world.rules, "pair") == 1);
}

TEST_CASE("driver: a user that goes away frees what it held", "[rewriter]") {
  World world(R"(
rule norm_quant {
  y = rms_norm(x, w){eps}
  q = static_scaled_fp8_quant(y, s)
  => q = rms_norm_static_fp8_quant(x, w, s){eps}
}
rule drop { y = mul(z, 0)  v = add(k, y)  => v = k }
pass p = greedy { norm_quant, drop }
)");
  Graph g = world.graph(R"(in x: bf16[n, 64], w: bf16[64], s: f32[1], k: bf16[n, 64]
    y = rms_norm(x, w)
    q = static_scaled_fp8_quant(y, s)
    z = y * 0
    v = k + z
    t = relu(v)
    out q, t)");
  CHECK(world.fired(g, "p", "norm_quant") == 1);
}

TEST_CASE("driver: where a given node and one that goes may change places, the earlier one goes",
          "[rewriter]") {
  const World world(
      "rule r { given { g = abs(x) }  y = abs(x)  => y = neg(g) }\npass p = once { r }");
  for (EngineKind engine : {EngineKind::naive, EngineKind::compiled}) {
    Graph g = world.graph("in x: f32[n]  a = abs(x)  b = abs(x)  c = sin(a)  d = cos(b)  out c, d");
    RewriteOptions options;
    options.engine = engine;
    world.run(g, "p", options);
    require_same(g, world.graph("in x: f32[n]  b = abs(x)  c = sin(neg(b))  d = cos(b)  out c, d"));
  }
}

TEST_CASE("driver: once comes back to a match that a rewrite stood in the way of for a while",
          "[rewriter]") {
  const World world(R"(
rule reads { given { h = relu(x) }  y = sin(x)  => y = cos(h) }
rule inner { h = relu(x)  y = neg(h)  => y = abs(x) }
rule alone { y = exp(x)  unless { _ = cos(relu(x)) }  => y = tanh(x) }
rule drop { y = add(z, k)  => y = k }
pass p = once { reads, inner, alone, drop }
)");
  for (EngineKind engine : {EngineKind::naive, EngineKind::compiled}) {
    Graph g = world.graph(R"(in x: f32[n], k: f32[n]
    s = sin(x)
    h = relu(x)
    y = neg(h)
    e = exp(x)
    a = s + k
    out y, e, a)");
    RewriteOptions options;
    options.engine = engine;
    world.run(g, "p", options);
    CHECK(count(g, "abs") == 1);
    CHECK(count(g, "tanh") == 1);
    CHECK(g.node_count() == 2);
  }
}

TEST_CASE("driver: the same input gives the same bytes", "[rewriter]") {
  const char* rules = R"(
rule merge { y = relu(relu(x))  => y = relu(x) }
rule twice { y = neg(neg(x))  => y = x }
rule swap { y = relu(neg(x))  => y = neg(silu(x)) }
pass p = greedy { merge, twice, swap } fuel 1000 ; cse ; dce
)";
  auto once = [&] {
    World world(rules);
    Graph g = world.graph(R"(in x: f32[n, 8]
      a = relu(neg(neg(relu(relu(x)))))
      b = relu(neg(relu(neg(neg(x)))))
      c = relu(neg(relu(neg(neg(x)))))
      d = a + b * c
      out d, b, c)");
    RewriteReport report = world.run(g, "p");
    return print_pwg(g) + journal_to_json_lines(report.journal, g, world.rules);
  };
  std::string first = once();
  CHECK(first == once());
  CHECK_THAT(first, Contains("\"event\":\"match\""));
}

TEST_CASE("driver: statistics, callbacks and warnings", "[rewriter]") {
  World world(R"(
rule merge { y = relu(relu(x))  => y = relu(x) }
rule never { y = silu(silu(x))  => y = silu(x) }
pass work = greedy { merge, never }
pass idle = greedy { never }
pipeline p { work  idle }
)");
  Graph g = world.graph("in x: f32[n]  a = relu(x)  b = relu(a)  c = silu(b)  out c");
  std::vector<std::string> calls;
  RewriteOptions options;
  options.stats = true;
  options.after_pass = [&](const std::string& pass, const Graph& graph) {
    calls.push_back(pass + " " + std::to_string(graph.node_count()));
  };
  RewriteReport report = world.run(g, "p", options);
  CHECK(calls == std::vector<std::string>{"input 3", "work 2", "idle 2"});
  REQUIRE(report.passes.size() == 2);
  const PassStats& work = report.passes[0];
  CHECK(work.nodes_before == 3);
  CHECK(work.nodes_after == 2);
  CHECK(work.rules.at("merge").matches == 1);
  CHECK(work.rules.at("never").matches == 0);
  // Once: what it reads after the rewrite is made by another relu, which `never` does not ask for.
  CHECK(work.rules.at("never").attempts == 1);
  CHECK(work.rules.at("never").rejections.at("N01") == 1);
  CHECK(warned(report, "PW1110"));
  CHECK(warned(report, "PW1111"));
}

TEST_CASE("driver: removing the op that states the ranks of a group is a warning", "[rewriter]") {
  World world("");
  const std::string dead = "in x: f32[n]  z = all_gather(x){world = 2, group = \"tp\"}  ";
  const auto warns = [&](const std::string& rest) {
    Graph g = world.graph(dead + rest);
    const RewriteReport report = world.run(g, "dce");
    return warned(report, "PW1117") ? report.warnings.front().message : "";
  };
  CHECK(warns("y = all_reduce(x){group = \"tp\"}  out y") ==
        "pass `dce` leaves no op that states that group `tp` has 2 ranks");
  CHECK(warns("y = all_reduce(x){group = \"dp\"}  out y") == "");
  CHECK(warns("y = all_reduce(x){group = \"tp\"}  out y, z") == "");
  CHECK(warns("y = all_gather(x){world = 2, group = \"tp\"}  w = all_reduce(y){group = \"tp\"}  "
              "out w") == "");
  CHECK(warns("y = relu(x)  out y") == "");
}

TEST_CASE("driver: an unknown pipeline is diagnosed with a hint", "[rewriter]") {
  World world("rule merge { y = relu(relu(x))  => y = relu(x) }\npass clean = greedy { merge }");
  Graph g = world.graph("in x: f32[n]  a = relu(x)  out a");
  Result<RewriteReport> report = world.try_run(g, "clan");
  REQUIRE_FALSE(report);
  CHECK(report.error().front().code == "PW1101");
  CHECK_THAT(report.error().front().help, Contains("clean"));
}

TEST_CASE("journal: counts by rule, family and built-in pass", "[rewriter]") {
  World world(R"(
group tidy { rule merge { y = relu(relu(x))  => y = relu(x) }  rule twice { y = neg(neg(x))  => y = x } }
pipeline p { greedy { tidy.* }  cse  dce }
)");
  Graph g = world.graph(
      "in x: f32[n]  a = relu(relu(x))  b = relu(neg(neg(x)))  d = silu(x)  c = a + b  out c");
  RewriteReport report = world.run(g, "p");
  CHECK(report.journal.count(world.rules, "tidy.merge") == 1);
  CHECK(report.journal.count(world.rules, "tidy.twice") == 1);
  CHECK(report.journal.count(world.rules, "tidy.*") == 2);
  CHECK(report.journal.count(world.rules, "cse") == 1);
  CHECK(report.journal.count(world.rules, "dce") == 1);
  CHECK(report.journal.total() == 4);
  std::string lines = journal_to_json_lines(report.journal, g, world.rules);
  CHECK_THAT(lines, Contains("\"rule\":\"tidy.merge\"") && Contains("\"event\":\"pass_end\"") &&
                        !Contains("seconds") && !Contains("hash"));
  CHECK_THAT(journal_to_json_lines(report.journal, g, world.rules, true), Contains("seconds"));
}

TEST_CASE("journal: what was noted is read, however large its ids are", "[rewriter]") {
  Journal journal;
  std::vector<MatchEvent> events;
  std::vector<Journal::Mark> marks;
  const auto note = [&](MatchEvent event) {
    marks.push_back(journal.mark());
    journal.add(event);
    events.push_back(std::move(event));
  };
  const auto node = [](std::uint64_t index) { return NodeId(static_cast<std::size_t>(index)); };
  const auto value = [](std::uint64_t index) { return ValueId(static_cast<std::size_t>(index)); };
  // Around the largest id of each width, and back to small ones.
  for (const std::uint64_t most : {0x01ull, 0xfeull, 0xffull, 0xfffeull, 0xffffull, 0xfffffeull,
                                   0xffffffull, 0xfffffffeull, 0x02ull}) {
    note({RuleId(0), {node(most), node(0)}, {{"x", value(1)}, {"y", {}}}, {node(2)}, {}});
    note({RuleId(0), {node(1), node(0)}, {{"x", value(most)}, {"y", value(0)}}, {node(most)}, {}});
    note({RuleId(300), {node(1), {}, node(most - 1)}, {}, {}, {node(most - 1), {}, node(1)}});
    note({RuleId(300), {node(4)}, {{"z", {}}}, {node(1), node(most)}, {node(most), node(4)}});
    note({RuleId(2), {}, {}, {node(7), node(8), node(9)}, {node(3)}});
  }
  const auto same = [](const MatchEvent& a, const MatchEvent& b) {
    return a.rule == b.rule && a.matched == b.matched && a.bindings == b.bindings &&
           a.created == b.created && a.erased == b.erased;
  };
  const auto holds = [&] {
    std::size_t at = 0;
    for (const JournalEvent& event : journal) {
      INFO("event " << at);
      REQUIRE(at < events.size());
      CHECK(same(std::get<MatchEvent>(event), events[at++]));
    }
    CHECK(at == events.size());
  };
  holds();
  journal.rollback(marks[20]);
  events.resize(20);
  note({RuleId(0), {node(5), node(6)}, {{"x", value(9)}, {"y", value(8)}}, {node(7)}, {}});
  journal.settle();
  holds();
}
