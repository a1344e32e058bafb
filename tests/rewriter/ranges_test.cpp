// A graph for each range of tokens, and the selection among them.
#include "rewriter/strategies/ranges.hpp"

#include "tests/rewriter/fixture.hpp"

using namespace pw;
using namespace pw::test;
using Catch::Matchers::Contains;

namespace {

constexpr const char* kRangedRules = R"(
rule few  { y = relu(x: T[n, d])  where n <= 16  => y = sin(x) }
rule some { y = relu(x: T[n, d])  where n > 16, n <= 256  => y = cos(x) }
rule even { y = neg(x: T[n, d])  where n % 2 == 0  => y = abs(x) }
pipeline plain { greedy { few, some, even } }
pipeline ranged { for tokens in ranges(16, 256) { greedy { few, some, even } } }
)";

std::vector<RangedResult> ranged(const World& world, const Graph& g, std::string_view pipeline) {
  Result<std::vector<RangedResult>> out = run_ranges(g, world.rules, pipeline, world.params);
  if (!out) FAIL(render(out.error(), world.context->sources));
  return std::move(*out);
}

std::vector<TokenRange> ranges(const World& world, const std::string& symbol) {
  Graph g = world.graph(symbol + " in x: f32[n, 8]  y = relu(x)  out y");
  std::vector<TokenRange> out;
  for (const RangedResult& r : ranged(world, g, "ranged")) out.push_back(r.range);
  return out;
}

using Ranges = std::vector<TokenRange>;

}  // namespace

TEST_CASE("ranges: each is rewritten on its own copy, under its own facts", "[rewriter]") {
  World world(kRangedRules);
  Graph g = world.graph("symbol n in 1..8192 tokens in x: f32[n, 8]  y = relu(x)  out y");
  const std::string before = print_pwg(g);
  std::vector<RangedResult> out = ranged(world, g, "ranged");
  REQUIRE(out.size() == 3);
  CHECK(count(out[0].graph, "sin") == 1);
  CHECK(count(out[1].graph, "cos") == 1);
  CHECK(count(out[2].graph, "relu") == 1);
  CHECK(out[0].report.journal.count(world.rules, "few") == 1);
  CHECK(out[1].report.journal.count(world.rules, "few") == 0);
  CHECK(out[1].range == TokenRange{17, 256});
  CHECK(out[1].graph.facts.find("n")->min == 17);
  CHECK(out[1].graph.facts.find("n")->role == "tokens");
  CHECK(print_pwg(g) == before);
}

TEST_CASE("ranges: what the facts rule out is left out", "[rewriter]") {
  World world(kRangedRules);
  CHECK(ranges(world, "symbol n in 1..8192 tokens") == Ranges{{1, 16}, {17, 256}, {257, 8192}});
  CHECK(ranges(world, "symbol n in 20..8192 tokens") == Ranges{{20, 256}, {257, 8192}});
  CHECK(ranges(world, "symbol n in 1..100 tokens") == Ranges{{1, 16}, {17, 100}});
  CHECK(ranges(world, "symbol n in 1..16 tokens") == Ranges{{1, 16}});
  CHECK(ranges(world, "symbol n in 1..8192 by 32 tokens") == Ranges{{17, 256}, {257, 8192}});
}

TEST_CASE("ranges: a pipeline without any has one, of all the facts allow", "[rewriter]") {
  World world(kRangedRules);
  Graph g = world.graph("symbol n in 2..64 by 2 tokens in x: f32[n, 8]  y = neg(x)  out y");
  std::vector<RangedResult> out = ranged(world, g, "plain");
  REQUIRE(out.size() == 1);
  CHECK(out[0].range == TokenRange{2, 64});
  CHECK(count(out[0].graph, "abs") == 1);
  CHECK(out[0].conditions.empty());
}

TEST_CASE("ranges: the tokens symbol is the declared one, else the only one", "[rewriter]") {
  World world(kRangedRules);
  Graph two = world.graph("in x: f32[n, m]  y = relu(x)  out y");
  Result<std::vector<RangedResult>> none = run_ranges(two, world.rules, "ranged", world.params);
  REQUIRE_FALSE(none);
  CHECK(none.error().front().code == "PW1109");
  Graph one = world.graph("in x: f32[m, 8]  y = relu(x)  out y");
  CHECK(ranged(world, one, "ranged").size() == 3);
  Graph named = world.graph("symbol m in 1..64 tokens in x: f32[n, m]  y = relu(x)  out y");
  CHECK(ranged(world, named, "ranged").size() == 2);
  Result<RewriteReport> single = world.try_run(one, "ranged");
  REQUIRE_FALSE(single);
  CHECK(single.error().front().code == "PW1109");
}

TEST_CASE("ranges: a step takes the graph whose range and conditions it meets", "[rewriter]") {
  World world(kRangedRules);
  Graph g = world.graph("symbol n in 1..8192 tokens in x: f32[n, 8]  y = neg(x)  out y");
  std::vector<RangedResult> out = ranged(world, g, "ranged");
  REQUIRE(out.size() == 3);
  Dims& dims = world.context->dims;
  Condition even;
  even.a = dims.symbol("n");
  even.b = dims.constant(2);
  even.divides = true;
  Condition large = even;
  large.divides = false;
  large.op = Compare::ge;
  large.b = dims.constant(100);
  RangedResult otherwise = out[1];
  otherwise.otherwise = true;
  out[1].conditions = {even, large};
  out.insert(out.begin() + 2, otherwise);
  const auto chosen = [&](std::int64_t tokens) {
    const RangedResult* variant = variant_for(out, {{"n", tokens}}, tokens);
    return variant == nullptr ? -1 : static_cast<int>(variant - out.data());
  };
  CHECK(chosen(16) == 0);
  CHECK(chosen(100) == 1);
  CHECK(chosen(101) == 2);
  CHECK(chosen(98) == 2);
  CHECK(chosen(257) == 3);
  CHECK(chosen(9000) == -1);
  Condition other;  // of something that is not known when a step begins
  out[0].conditions = {other};
  CHECK(chosen(16) == -1);
}

TEST_CASE("ranges: an assumption makes a second graph, which is made without it", "[rewriter]") {
  World world(R"(
rule fours { y = relu(x: T[n, d])  assume n % 4 == 0, n >= 8  => y = sin(x) }
rule other { y = neg(x)  => y = cos(x) }
pipeline ranged { for tokens in ranges(16) { greedy { fours, other } } }
)");
  Graph g = world.graph("symbol n in 1..64 tokens in x: f32[n, 8]  y = relu(x)  z = neg(y)  out z");
  const std::vector<RangedResult> out = ranged(world, g, "ranged");
  REQUIRE(out.size() == 4);
  for (std::size_t i : {0, 1, 2, 3}) {
    CHECK(out[i].otherwise == (i % 2 == 1));
    CHECK(count(out[i].graph, "sin") == (i % 2 == 0 ? 1u : 0u));
    CHECK(count(out[i].graph, "cos") == 1);
  }
  CHECK(out[0].conditions.size() == 2);
  CHECK(out[1].conditions.empty());
  CHECK(out[2].conditions.size() == 1);  // that n is 17 at least proves the other
  const auto chosen = [&](std::int64_t tokens) {
    return static_cast<int>(variant_for(out, {{"n", tokens}}, tokens) - out.data());
  };
  CHECK(chosen(4) == 1);
  CHECK(chosen(8) == 0);
  CHECK(chosen(10) == 1);
  CHECK(chosen(20) == 2);
  CHECK(chosen(63) == 3);
  // What is known to hold needs no second graph; what is known not to hold has no first.
  Graph even = world.graph("symbol n in 8..64 by 4 tokens in x: f32[n, 8]  y = relu(x)  out y");
  CHECK(ranged(world, even, "ranged").size() == 2);
  Graph few = world.graph("symbol n in 1..7 tokens in x: f32[n, 8]  y = relu(x)  out y");
  const std::vector<RangedResult> one = ranged(world, few, "ranged");
  REQUIRE(one.size() == 1);
  CHECK(count(one[0].graph, "relu") == 1);
}

TEST_CASE("ranges: facts from an assumption apply to matches that were refused before",
          "[rewriter]") {
  // `even` is refused at `a` and `b` before `assumes` fires at the end of the graph.
  World world(R"(
rule even { y = neg(x: T[n, d])  where n % 2 == 0  => y = abs(x) }
rule assumes { y = relu(x: T[n, d])  assume n % 4 == 0  => y = sin(x) }
rule odd { y = cos(x: T[n, d])  where n % 4 != 0  => y = abs(x) }
pass g = greedy { even, assumes, odd }
pass w = walk { even, assumes }
pass o = once { even, assumes }
)");
  const char* text = "in x: f32[n, 8]  a = neg(x)  b = neg(a)  c = relu(b)  d = neg(c)  out d";
  struct Case {
    const char* pass;
    std::size_t even;
  };
  // walk does not come back, and what `once` saw at first is without the fact.
  for (const Case& c : {Case{"g", 3}, Case{"w", 1}, Case{"o", 0}}) {
    for (const EngineKind engine : {EngineKind::naive, EngineKind::compiled}) {
      INFO(c.pass << (engine == EngineKind::naive ? " naive" : " compiled"));
      RewriteOptions options;
      options.engine = engine;
      Graph g = world.graph(text);
      const RewriteReport report = world.run(g, c.pass, options);
      CHECK(report.journal.count(world.rules, "assumes") == 1);
      CHECK(report.journal.count(world.rules, "even") == c.even);
      CHECK(g.facts.find("n")->multiple == 4);
    }
  }
}

TEST_CASE("ranges: an interval that was assumed is a fact too", "[rewriter]") {
  World world(R"(
rule large { y = relu(x: T[n, d])  assume n >= 16  => y = sin(x) }
rule small { y = abs(x: T[n, d])  assume n < 100  => y = cos(x) }
rule known { y = neg(x: T[n, d])  where n in 16..99  => y = exp(x) }
pass p = greedy { large, small, known }
)");
  Graph g = world.graph("in x: f32[n, 8]  y = neg(abs(relu(x)))  out y");
  const RewriteReport report = world.run(g, "p");
  CHECK(report.journal.count(world.rules, "known") == 1);
  CHECK(report.conditions.size() == 2);
  CHECK(g.facts.find("n")->min == 16);
  CHECK(g.facts.find("n")->max == 99);
}
