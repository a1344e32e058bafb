// One match replaced: outputs, names, provenance, legality, and what happens to what nobody needs
// any more.
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using namespace pw::test;
using Catch::Matchers::Contains;

namespace {

constexpr const char* kAddNorm = R"(
rule add_norm {
  r = add(x: T[*b, d], res: T[*b, d])
  y = rms_norm(r, w: T[d]){eps}
  => y, r = fused_add_rms_norm(x, res, w){eps}
}
)";

}  // namespace

TEST_CASE("apply: outputs keep their users, names and provenance", "[rewriter]") {
  World world(kAddNorm);
  Graph g = world.graph(
      "in x: bf16[n, 64], z: bf16[n, 64], w: bf16[64]  sum = z + x  norm = rms_norm(sum, w)  t = "
      "relu(sum)  out norm, sum, t");
  NodeId root = g.producer(g.find_value("sum"));
  g.set_group(root, "layers.0");
  g.set_group(g.producer(g.find_value("norm")), "layers.0.norm");
  std::vector<Match> found = world.matches(g, "add_norm");
  REQUIRE(found.size() == 1);
  Result<MatchEvent> event = apply_match(g, world.rules, found[0]);
  REQUIRE(event);
  CHECK(event->erased.size() == 2);
  REQUIRE(event->created.size() == 1);
  NodeId fused = event->created.front();
  CHECK(g.op_of(fused).name == "fused_add_rms_norm");
  CHECK(g.value_name(g.outputs()[0]) == "norm");
  CHECK(g.value_name(g.outputs()[1]) == "sum");
  CHECK(g.outputs()[0] == g.result(fused, 0));
  CHECK(g.outputs()[1] == g.result(fused, 1));
  CHECK(g.group(fused).substr(0, 8) == "layers.0");
  CHECK(verify(g).empty());
}

TEST_CASE("apply: an unread output does not prevent a rewrite", "[rewriter]") {
  World world(R"(
rule norm_quant {
  y, r = fused_add_rms_norm(x, res, w){eps}
  q = static_scaled_fp8_quant(y, s)
  => q, r = fused_add_rms_norm_static_fp8_quant(x, res, w, s){eps}
}
)");
  Graph g = world.graph(
      "in x: bf16[n, 64], z: bf16[n, 64], w: bf16[64], s: f32[1]  y, r = fused_add_rms_norm(x, z, "
      "w)  q = static_scaled_fp8_quant(y, s)  out q");
  CHECK(world.fired(g, "norm_quant", "norm_quant") == 1);
  CHECK(g.node_count() == 1);
}

TEST_CASE("apply: siblings match whichever comes first in the graph", "[rewriter]") {
  World world(R"(
op both(x: T[*s]) -> (a: T[*s], b: T[*s])
rule siblings { a = silu(x)  b = relu(x)  => a, b = both(x) }
rule siblings_turned { b = relu(x)  a = silu(x)  => a, b = both(x) }
)");
  const char* graphs[] = {"in x: f32[n]  p = silu(x)  q = relu(x)  z = p + q  out z",
                          "in x: f32[n]  q = relu(x)  p = silu(x)  z = p + q  out z",
                          "in x: f32[n]  q = relu(x)  t = neg(q)  p = silu(x)  z = p + t  out z"};
  for (const char* text : graphs)
    for (const char* rule : {"siblings", "siblings_turned"}) {
      INFO(text << " with " << rule);
      Graph g = world.graph(text);
      CHECK(world.fired(g, rule, rule) == 1);
      CHECK(count(g, "both") == 1);
      CHECK(count(g, "silu") + count(g, "relu") == 0);
    }
}

TEST_CASE("apply: users that stand too early move behind the new node", "[rewriter]") {
  World world(R"(
op gemm2(x: T[n, k], v: T[k, m], w: T[k, m]) -> (a: T[n, m], b: T[n, m])
rule pair { a = mm(x, v)  b = mm(x, w)  => a, b = gemm2(x, v, w) }
)");
  Graph g = world.graph(
      "in x: f32[n, 8], v: f32[8, 8], u: f32[8, 8]  a = mm(x, v)  t = relu(a)  w = relu(u)  b = "
      "mm(x, w)  z = t + b  out z");
  CHECK(world.fired(g, "pair", "pair") == 1);
  CHECK(verify(g).empty());
}

TEST_CASE("apply: a replacement that would read its own result is refused, with the path",
          "[rewriter]") {
  World world(R"(
op gemm2(x: T[n, k], v: T[k, m], w: T[k, m]) -> (a: T[n, m], b: T[n, m])
rule pair { a = mm(x, v)  b = mm(x, w)  => a, b = gemm2(x, v, w) }
)");
  Graph g = world.graph(
      "in x: f32[8, 8], v: f32[8, 8]  a = mm(x, v)  t = relu(a)  w = neg(t)  b = mm(x, w)  out b");
  CHECK(world.matches(g, "pair").empty());
  Rejection why = world.reason(g, "pair");
  CHECK(why.code == "N13");
  CHECK_THAT(why.message, Contains("%t (relu) → %w (neg)"));
  // A match made before the graph changed is caught by the applier as well.
  Graph fine = world.graph(
      "in x: f32[8, 8], v: f32[8, 8], o: f32[8, 8]  a = mm(x, v)  t = relu(a)  u = neg(t)  w = "
      "abs(o)  b = mm(x, w)  z = u + b  out z");
  std::vector<Match> found = world.matches(fine, "pair");
  REQUIRE(found.size() == 1);
  NodeId w = fine.producer(fine.find_value("w"));
  fine.set_operand(w, 0, fine.find_value("u"));
  std::string before = print_pwg(fine);
  Result<MatchEvent> refused = apply_match(fine, world.rules, found[0]);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().code == "N13");
  CHECK(print_pwg(fine) == before);
}

TEST_CASE("apply: a match goes stale when a value escapes or a node is gone", "[rewriter]") {
  World world("rule twice { y = neg(neg(x))  => y = x }");
  Graph g = world.graph("in x: f32[n]  h = neg(x)  y = neg(h)  z = relu(y)  out z");
  Match match = world.matches(g, "twice").at(0);
  g.add_output(g.find_value("h"));
  Result<MatchEvent> escapes = apply_match(g, world.rules, match);
  REQUIRE_FALSE(escapes);
  CHECK(escapes.error().front().code == "N08");
  Graph other = world.graph("in x: f32[n]  h = neg(x)  y = neg(h)  z = relu(y)  out z");
  Match again = world.matches(other, "twice").at(0);
  REQUIRE(apply_match(other, world.rules, again));
  Result<MatchEvent> gone = apply_match(other, world.rules, again);
  REQUIRE_FALSE(gone);
  CHECK(gone.error().front().code == "N10");
}

TEST_CASE("apply: what only the match needed goes with it", "[rewriter]") {
  World world("rule drop { y = add(x, mul(z, 0))  => y = x }");
  Graph g = world.graph("in x: f32[n], z: f32[n]  k = relu(z)  y = x + k * 0  t = neg(y)  out t");
  CHECK(world.fired(g, "drop", "drop") == 1);
  require_same(g, world.graph("in x: f32[n], z: f32[n]  t = neg(x)  out t"));
}

TEST_CASE("apply: a result that exists already is not a change", "[rewriter]") {
  World world("rule same { y = add(a, b)  => y = add(a, b) }");
  Graph g = world.graph("in a: f32[n], b: f32[n]  y = add(a, b)  out y");
  std::string before = print_pwg(g);
  Result<MatchEvent> event = apply_match(g, world.rules, world.matches(g, "same").at(0));
  REQUIRE_FALSE(event);
  CHECK(event.error().front().code == "PW1105");
  CHECK(world.fired(g, "same", "same") == 0);
  CHECK(print_pwg(g) == before);
}

TEST_CASE("apply: nothing effectful is moved across an effect", "[rewriter]") {
  World world(R"(
op log_row(x: T[*s]) -> y: T[*s] effect
op log_both(x: T[*s], z: T[*s]) -> (a: T[*s], b: T[*s]) effect
op store(mut cache: T[*s], x: T[*s]) -> (c: T[*s] from cache)
rule two_logs { a = log_row(x)  b = log_row(a)  => b = log_row(x) }
rule sums { a = relu(c)  b = neg(a)  => b = abs(c) }
)");
  Graph plain = world.graph("in x: f32[n]  a = log_row(x)  b = log_row(a)  out b");
  CHECK(world.fired(plain, "two_logs", "two_logs") == 1);
  Graph across = world.graph(
      "in x: f32[n], z: f32[n]  a = log_row(x)  l = log_row(z)  b = log_row(a)  out b, l");
  Match match = world.matches(across, "two_logs").at(0);
  Result<MatchEvent> refused = apply_match(across, world.rules, match);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().code == "N14");
  // A pure match may not be moved across a write to what it reads, but may across any other.
  Graph written =
      world.graph("in c: f32[n], x: f32[n]  a = relu(c)  d = store(c, x)  b = neg(a)  out b, d");
  CHECK(world.fired(written, "sums", "sums") == 0);
  Graph elsewhere = world.graph(
      "in c: f32[n], e: f32[n], x: f32[n]  a = relu(c)  d = store(e, x)  b = neg(a)  out b, d");
  CHECK(world.fired(elsewhere, "sums", "sums") == 1);
}

TEST_CASE("apply: everything can be rolled back", "[rewriter]") {
  World world(std::string(kAddNorm) +
              "rule twice { y = neg(neg(x))  => y = x }\npass all = cse ; greedy { add_norm, twice "
              "} fuel 100 ; dce");
  Graph g = world.graph(R"(in x: bf16[n, 64], z: bf16[n, 64], w: bf16[64]
    a = neg(x)
    b = neg(a)
    sum = z + b
    sum2 = z + b
    norm = rms_norm(sum, w)
    t = relu(sum2)
    out norm, sum, t)");
  std::string before = print_pwg(g);
  g.start_undo();
  Graph::Checkpoint start = g.checkpoint();
  RewriteReport report = world.run(g, "all");
  CHECK(report.journal.count(world.rules, "add_norm") == 1);
  CHECK(report.journal.count(world.rules, "twice") == 1);
  CHECK(print_pwg(g) != before);
  g.rollback(start);
  CHECK(print_pwg(g) == before);
  CHECK(verify(g).empty());
}
