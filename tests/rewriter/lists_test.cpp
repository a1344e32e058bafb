// Patterns whose parts match several times or must be absent, and searches that start from given
// nodes.
#include <algorithm>

#include "rewriter/matcher/search.hpp"
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using namespace pw::test;
using Catch::Matchers::Contains;

namespace {

NodeId node(const Graph& g, std::string_view value) { return g.producer(g.find_value(value)); }

/// How many matches there are with these nodes given, in pattern order; "-" is free.
std::size_t count_fixed(const World& world, const Graph& g, std::string_view rule,
                        const std::vector<std::string>& names) {
  std::vector<NodeId> nodes;
  for (const std::string& name : names) nodes.push_back(name == "-" ? NodeId() : node(g, name));
  RuleLayout layout = lay_out(world.rules, world.rule(rule));
  Env base = starting_env(*layout.rule, world.params);
  Search search(g, layout, base, false);
  std::size_t found = 0;
  search.run_fixed(nodes, [&](const Match&) { return ++found, true; });
  return found;
}

constexpr const char* kMerge = R"(
rule merge {
  many y = mm(x, w: T[k, m])
  where count(y) >= 2
  =>
  z    = mm(x, cat(w...){dim = 1})
  y... = split(z){dim = 1, sizes = [m...]}
}
rule sink { y = cat(relu(x)...){dim}  => y = relu(cat(x...){dim}) }
)";

/// Applies every match there is, one after another; how many those were.
std::size_t apply_all(const World& world, Graph& g, std::string_view rule) {
  for (std::size_t done = 0;; ++done) {
    std::vector<Match> matches = world.matches(g, rule);
    if (matches.empty()) return done;
    Result<MatchEvent> applied = apply_match(g, world.rules, matches.front());
    if (!applied) FAIL(render(applied.error(), world.context->sources));
    REQUIRE(verify(g).empty());
  }
}

void require_rewritten(const World& world, std::string_view rule, const std::string& before,
                       const std::string& after) {
  Graph g = world.graph(before);
  REQUIRE(apply_all(world, g, rule) == 1);
  require_same(g, world.graph(after));
}

}  // namespace

TEST_CASE("lists: siblings are merged, each with its own width", "[rewriter]") {
  World world(kMerge);
  require_rewritten(world, "merge", R"(
    in x: bf16[n, 64], q: bf16[64, 32], k: bf16[64, 8], v: bf16[64, 16]
    a = mm(x, q)  b = mm(x, k)  c = mm(x, v)
    out b, a, c)",
                    R"(
    in x: bf16[n, 64], q: bf16[64, 32], k: bf16[64, 8], v: bf16[64, 16]
    z = mm(x, cat(q, k, v){dim = 1})
    a, b, c = split(z){dim = 1, sizes = [32, 8, 16]}
    out b, a, c)");
}

TEST_CASE("lists: an op over many operands is moved behind the op that joins them", "[rewriter]") {
  World world(kMerge);
  require_rewritten(world, "sink", R"(
    in a: f32[n, 4], b: f32[n, 8]
    y = cat(relu(b), relu(a)){dim = 1}
    out y)",
                    R"(
    in a: f32[n, 4], b: f32[n, 8]
    y = relu(cat(b, a){dim = 1})
    out y)");
}

TEST_CASE("lists: members agree on every name that is not a list", "[rewriter]") {
  World world(kMerge);
  // Another left operand, another dtype: two groups, and one node on its own.
  Graph g = world.graph(R"(
    in x: bf16[n, 64], z: bf16[n, 64], p: bf16[64, 8], q: bf16[64, 16]
    in r: bf16[8, 8]
    a = mm(x, p)  b = mm(z, p)  c = mm(x, q)  d = mm(z, q)  e = mm(a, r)
    out a, b, c, d, e)");
  CHECK(world.matches(g, "merge").size() == 2);
  CHECK(apply_all(world, g, "merge") == 2);
  CHECK(count(g, "mm") == 3);
  CHECK(count(g, "split") == 2);
}

TEST_CASE("lists: a member that depends on an earlier one is left out", "[rewriter]") {
  World world(kMerge);
  // c reads a through its weight. It stays, and is not the first of another group.
  require_rewritten(world, "merge", R"(
    in x: bf16[8, 8], p: bf16[8, 8], q: bf16[8, 8]
    a = mm(x, p)  h = relu(a)  c = mm(x, h)  b = mm(x, q)
    out b, c)",
                    R"(
    in x: bf16[8, 8], p: bf16[8, 8], q: bf16[8, 8]
    z = mm(x, cat(p, q){dim = 1})
    a, b = split(z){dim = 1, sizes = [8, 8]}
    c = mm(x, relu(a))
    out b, c)");
}

TEST_CASE("lists: a member that nothing reads is a member, and one is a list too", "[rewriter]") {
  World world(kMerge);
  Graph dead = world.graph(R"(
    in x: bf16[n, 8], p: bf16[8, 8], q: bf16[8, 8]
    a = mm(x, p)  b = mm(x, q)
    out a)");
  std::vector<Match> matches = world.matches(dead, "merge");
  REQUIRE(matches.size() == 1);
  CHECK(matches[0].members ==
        std::vector<std::vector<std::vector<NodeId>>>{{{node(dead, "a")}, {node(dead, "b")}}});
  Graph one = world.graph("in x: bf16[n, 8], p: bf16[8, 8]  a = mm(x, p)  out a");
  Rejection why = world.reason(one, "merge");
  CHECK(why.code == "N09");
  CHECK_THAT(why.message, Contains("count(y) >= 2"));
  CHECK_THAT(why.message, Contains("1 >= 2"));
  World any(
      "rule one { many y = mm(x, w: T[k, m])  => y... = split(neg(mm(neg(x), cat(w...){dim = "
      "1}))){dim = 1, sizes = [m...]} }");
  CHECK(any.matches(any.graph("in x: bf16[n, 8], p: bf16[8, 8]  a = mm(x, p)  out a"), "one")
            .size() == 1);
}

TEST_CASE("lists: every operand must fit, and what is consumed may have no other user",
          "[rewriter]") {
  World world(kMerge);
  struct Case {
    const char* code;
    const char* text;
    const char* graph;
  };
  const Case cases[] = {
      {"N01", "not `relu`",
       "in a: f32[n, 4], b: f32[n, 4]  y = cat(relu(a), neg(b)){dim = 1}  out y"},
      {"N01", "operand 1", "in a: f32[n, 4], b: f32[n, 4]  y = cat(relu(a), b){dim = 1}  out y"},
      {"N08", "%r is consumed",
       "in a: f32[n, 4], b: f32[n, 4]  r = relu(a)  y = cat(relu(b), r){dim = 1}  z = neg(r)  "
       "out y, z"},
  };
  for (const Case& c : cases) {
    INFO(c.graph);
    Graph g = world.graph(c.graph);
    CHECK(world.matches(g, "sink").empty());
    Rejection why = world.reason(g, "sink");
    INFO(why.message);
    CHECK(why.code == c.code);
    std::string plain = why.message;
    plain.erase(std::remove(plain.begin(), plain.end(), '`'), plain.end());
    std::string wanted = c.text;
    wanted.erase(std::remove(wanted.begin(), wanted.end(), '`'), wanted.end());
    CHECK_THAT(plain, Contains(wanted));
  }
  // The same node may stand for several operands.
  require_rewritten(world, "sink", "in a: f32[n, 4]  r = relu(a)  y = cat(r, r){dim = 1}  out y",
                    "in a: f32[n, 4]  y = relu(cat(a, a){dim = 1})  out y");
}

TEST_CASE("lists: a group that hangs on another node of the pattern", "[rewriter]") {
  World world(R"(
rule after {
  h = neg(x)
  many y = mm(h, w: T[k, m])
  => y... = split(neg(mm(x, cat(w...){dim = 1}))){dim = 1, sizes = [m...]}
}
rule kept {
  given { h = relu(x) }
  many y = mm(h, w: T[k, m])
  => y... = split(mm(h, cat(w...){dim = 1})){dim = 1, sizes = [m...]}
}
)");
  require_rewritten(world, "after", R"(
    in x: f32[n, 4], a: f32[4, 1], b: f32[4, 3]
    h = neg(x)  p = mm(h, a)  q = mm(h, b)
    out p, q)",
                    R"(
    in x: f32[n, 4], a: f32[4, 1], b: f32[4, 3]
    p, q = split(neg(mm(x, cat(a, b){dim = 1}))){dim = 1, sizes = [1, 3]}
    out p, q)");
  Graph g = world.graph(R"(
    in x: f32[n, 8], a: f32[8, 4], b: f32[8, 2]
    h = relu(x)  p = mm(h, a)  q = mm(h, b)  z = neg(h)
    out p, q, z)");
  REQUIRE(world.matches(g, "kept").size() == 1);
  Result<MatchEvent> applied = apply_match(g, world.rules, world.matches(g, "kept").front());
  REQUIRE(applied);
  CHECK(count(g, "mm") == 1);
  CHECK(count(g, "relu") == 1);
  CHECK(applied->matched.size() == 3);
  CHECK(applied->bindings.size() == 6);  // h, x, and two each of y and w
}

TEST_CASE("lists: what reads the results states which members there are, and in which order",
          "[rewriter]") {
  World world(R"(
rule read {
  many p = mm(x, w: T[k, m])
  y = cat(p...){dim = 1}
  => y = mm(x, cat(w...){dim = 1})
}
rule behind {
  h = neg(x)
  many p = mm(h, w)
  y = cat(h, p...){dim = 1}
  => k = abs(x)  y = cat(k, mm(k, cat(w...){dim = 1})){dim = 1}
}
rule joined { h = neg(x)  y = cat(mm(h, w)...){dim = 1}  => y = mm(neg(x), cat(w...){dim = 1}) }
rule twice {
  h = neg(x)
  many p = mm(h, w)
  y = cat(p...){dim = 1}
  z = cat(h, p...){dim = 1}
  => k = abs(x)  y = mm(k, cat(w...){dim = 1})  z = cat(k, y){dim = 1}
}
)");
  const std::string in = "in x: f32[n, 4], u: f32[4, 8], v: f32[4, 8], w: f32[4, 8] ";
  const auto turned = [&](const char* rule, const std::string& before, const std::string& after) {
    INFO(before);
    require_rewritten(world, rule, in + before, in + after);
  };
  const auto kept = [&](const char* rule, const std::string& body) {
    INFO(body);
    CHECK(world.matches(world.graph(in + body), rule).empty());
  };
  // Its order, not the graph's; other users of x are not members.
  turned("read", "a = mm(x, u)  b = mm(x, v)  c = mm(x, w)  y = cat(b, a){dim = 1}  out y, c",
         "y = mm(x, cat(v, u){dim = 1})  c = mm(x, w)  out y, c");
  turned("read", "a = mm(x, u)  y = cat(a, a){dim = 1}  out y",
         "y = mm(x, cat(u, u){dim = 1})  out y");
  kept("read", "a = mm(x, u)  b = mm(x, v)  y = cat(a, b){dim = 1}  out y, b");
  kept("read", "a = mm(x, u)  b = relu(x)  y = cat(a, b){dim = 1}  out y");
  kept("read", "a = mm(x, u)  b = mm(neg(x), v)  y = cat(a, b){dim = 1}  out y");
  // Two lists of members of one value, a match each.
  Graph two = world.graph(in + R"(
    a = mm(x, u)  b = mm(x, v)  c = mm(x, w)  d = mm(x, v)
    y = cat(d, a){dim = 1}  z = cat(b, c){dim = 1}
    out y, z)");
  CHECK(world.matches(two, "read").size() == 2);
  CHECK(apply_all(world, two, "read") == 2);
  CHECK(count(two, "mm") == 2);
  // What makes the value in common is found behind the members.
  turned("behind", "h = neg(x)  a = mm(h, u)  b = mm(h, v)  y = cat(h, b, a){dim = 1}  out y",
         "k = abs(x)  y = cat(k, mm(k, cat(v, u){dim = 1})){dim = 1}  out y");
  kept("behind", "h = neg(x)  g = neg(x)  a = mm(h, u)  y = cat(g, a){dim = 1}  out y");
  kept("behind", "h = neg(x)  a = mm(h, u)  y = cat(h, a, x){dim = 1}  out y");
  turned("joined", "h = neg(x)  a = mm(h, u)  b = mm(h, v)  y = cat(b, a){dim = 1}  out y",
         "y = mm(neg(x), cat(v, u){dim = 1})  out y");
  // Two readers read the same members in the same order.
  const std::string made = "h = neg(x)  a = mm(h, u)  b = mm(h, v)  y = cat(b, a){dim = 1} ";
  turned("twice", made + "z = cat(h, b, a){dim = 1}  out y, z",
         "k = abs(x)  y = mm(k, cat(v, u){dim = 1})  z = cat(k, y){dim = 1}  out y, z");
  kept("twice", made + "z = cat(h, a, b){dim = 1}  out y, z");
  kept("twice", made + "z = cat(h, b){dim = 1}  out y, z");
}

TEST_CASE("lists: the rest of the operands and of the results", "[rewriter]") {
  World world(R"(
rule cancel { y... = split(z){dim, sizes = [m...]}  r = cat(y...){dim}  _ = m  => r = z }
rule lift { y = relu(cat(x...){dim})  => y = cat(relu(x)...){dim} }
rule first { y = cat(a, rest...){dim = 0}  where count(rest) == 2
             => y = neg(neg(cat(cat(rest...){dim = 0}, a){dim = 0})) }
)");
  require_rewritten(world, "cancel", R"(
    in z: f32[n, 6]
    a, b, c = split(z){dim = 1, sizes = [1, 2, 3]}
    r = cat(a, b, c){dim = 1}
    y = neg(r)
    out y)",
                    "in z: f32[n, 6]  y = neg(z)  out y");
  Graph other = world.graph(R"(
    in z: f32[n, 6]
    a, b, c = split(z){dim = 1, sizes = [2, 2, 2]}
    r = cat(a, c, b){dim = 1}
    out r)");
  CHECK(world.matches(other, "cancel").empty());
  CHECK(world.reason(other, "cancel").code == "N07");
  require_rewritten(world, "lift", "in a: f32[n], b: f32[n]  y = relu(cat(a, b){dim = 0})  out y",
                    "in a: f32[n], b: f32[n]  y = cat(relu(a), relu(b)){dim = 0}  out y");
  Graph three = world.graph("in a: f32[n], b: f32[n]  y = cat(a, b, b){dim = 0}  out y");
  CHECK(world.matches(three, "first").size() == 1);
  Graph two = world.graph("in a: f32[n], b: f32[n]  y = cat(a, b){dim = 0}  out y");
  CHECK(world.reason(two, "first").code == "N09");
}

TEST_CASE("lists: `unless` refuses what is there, among nodes that are not matched", "[rewriter]") {
  World world(R"(
rule alone { y = relu(x)  unless { _ = neg(y) }  => y = maximum(x, 0) }
rule made { y = relu(x)  unless { x = add(a, b) }  => y = maximum(x, 0) }
rule deep { y = relu(x)  unless { h = neg(x)  _ = abs(h) }  => y = maximum(x, 0) }
rule others { y = relu(x)  unless { _ = relu(x) }  => y = maximum(x, 0) }
)");
  const auto matches = [&](const char* rule, const char* body) {
    return world.matches(world.graph(body), rule).size();
  };
  CHECK(matches("alone", "in x: f32[n]  y = relu(x)  out y") == 1);
  CHECK(matches("alone", "in x: f32[n]  y = relu(x)  z = neg(y)  out z") == 0);
  CHECK(matches("alone", "in x: f32[n]  y = relu(x)  z = neg(x)  out y, z") == 1);
  CHECK(matches("made", "in x: f32[n]  y = relu(x)  out y") == 1);
  CHECK(matches("made", "in x: f32[n]  y = relu(x + x)  out y") == 0);
  CHECK(matches("made", "in x: f32[n]  y = relu(neg(x))  out y") == 1);
  CHECK(matches("deep", "in x: f32[n]  y = relu(x)  z = neg(x)  out y, z") == 1);
  CHECK(matches("deep", "in x: f32[n]  y = relu(x)  z = abs(neg(x))  out y, z") == 0);
  CHECK(matches("others", "in x: f32[n]  y = relu(x)  out y") == 1);
  CHECK(matches("others", "in x: f32[n]  y = relu(x)  z = relu(x)  out y, z") == 0);
  Graph g = world.graph("in x: f32[n]  y = relu(x)  z = neg(y)  out z");
  Rejection why = world.reason(g, "alone");
  CHECK(why.code == "N09");
  CHECK_THAT(why.message, Contains("%z (neg) is there"));
  CHECK(why.at == node(g, "z"));
}

TEST_CASE(
    "lists: an assumption fails where it is refuted, and is a condition where it is not known",
    "[rewriter]") {
  World world(R"(
rule r { y = relu(x: T[n, d])  assume n % 8 == 0, n >= 16 and d in 4..64  => y = maximum(x, 0) }
)");
  CHECK(world.reason(world.graph("in x: f32[12, 8]  y = relu(x)  out y"), "r").code == "N09");
  std::vector<Match> known =
      world.matches(world.graph("in x: f32[16, 8]  y = relu(x)  out y"), "r");
  REQUIRE(known.size() == 1);
  CHECK(known[0].conditions.empty());
  std::vector<Match> open = world.matches(world.graph("in x: f32[s, 8]  y = relu(x)  out y"), "r");
  REQUIRE(open.size() == 1);
  Dims& dims = world.context->dims;
  REQUIRE(open[0].conditions.size() == 2);
  const Condition& divides = open[0].conditions[0];
  CHECK(divides.divides);
  CHECK(divides.a == dims.symbol("s"));
  CHECK(divides.b == dims.constant(8));
  CHECK(divides.text == "s % 8 == 0");
  const Condition& least = open[0].conditions[1];
  CHECK_FALSE(least.divides);
  CHECK(least.op == Compare::ge);
  CHECK(least.a == dims.symbol("s"));
  CHECK(least.b == dims.constant(16));
}

TEST_CASE("lists: a search with given nodes finds the matches that hold them", "[rewriter]") {
  World world(R"(
op pair(x: T[*s]) -> (p: T[*s], q: T[*s])
rule siblings { p = relu(x)  q = abs(x)  => p, q = pair(x) }
rule sum { y = add(neg(a), abs(b))  => y = sub(abs(b), a) }
)");
  Graph g = world.graph(R"(
    in x: f32[n], z: f32[n]
    a = relu(x)  b = abs(x)  c = abs(x)  d = abs(z)
    e = neg(z)  f = abs(x)  s = add(f, e)
    out a, b, c, d, s)");
  CHECK(count_fixed(world, g, "siblings", {"a", "b"}) == 1);
  CHECK(count_fixed(world, g, "siblings", {"a", "-"}) == 3);
  CHECK(count_fixed(world, g, "siblings", {"-", "c"}) == 1);
  CHECK(count_fixed(world, g, "siblings", {"-", "-"}) == 3);
  CHECK(count_fixed(world, g, "siblings", {"a", "d"}) == 0);
  CHECK(count_fixed(world, g, "siblings", {"b", "a"}) == 0);
  // Swapped operands are searched all the same; the way from a given node leads to the anchor.
  CHECK(count_fixed(world, g, "sum", {"e", "f", "s"}) == 1);
  CHECK(count_fixed(world, g, "sum", {"-", "f", "-"}) == 1);
  CHECK(count_fixed(world, g, "sum", {"-", "b", "-"}) == 0);
}
