// Every gate of the matcher, with its code, its message and the place it names.
#include "rewriter/matcher/match_program.hpp"
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using namespace pw::test;
using Catch::Matchers::Contains;

namespace {

constexpr const char* kRules = R"(
rule norm_quant {
  y = rms_norm(x: T[*b, d], w: T[d]){eps}
  q = static_scaled_fp8_quant(y, s: f32[1])
  => q = rms_norm_static_fp8_quant(x, w, s){eps}
}
rule default_norm_quant {
  y = rms_norm(x, w)
  q = static_scaled_fp8_quant(y, s)
  => q = rms_norm_static_fp8_quant(x, w, s)
}
rule add_norm {
  r = add(x: T[*b, d], res: T[*b, d])
  y = rms_norm(r, w: T[d]){eps}
  => y, r = fused_add_rms_norm(x, res, w){eps}
}
rule halves {
  g, u = split(gu: T[*b, 2*d]){dim = -1, sizes = [d, d]}
  y = mul(silu(g), u)
  => y = silu_and_mul(gu)
}
rule sub_relu { y = sub(relu(x), z)  => y = neg(sub(z, relu(x))) }
rule difference { y = sub(x, neg(z))  => y = add(x, z) }
rule square { y = mul(x, x)  => y = pow(x, 2) }
rule double { y = mul(x, 2)  => y = add(x, x) }
rule slice_all { y = slice(x){dim, start = 0, end, step = 1}  where end >= size(x, dim)  => y = x }
rule same_eps {
  a = rms_norm(x, w){eps}
  b = rms_norm(a, w){eps}
  => b = rms_norm(x, w){eps}
}
op twin(x: T[*s], z: T[*s], w: T[d]) {eps: float} -> (a: T[*s], b: T[*s])
rule twins {
  a = rms_norm(x, w){eps}
  b = rms_norm(z, w){eps}
  => a, b = twin(x, z, w){eps}
}
)";

struct Case {
  const char* name;
  const char* rule;
  const char* code;
  const char* text;
  const char* graph;
};

const Case kCases[] = {
    {"another op", "norm_quant", "N01", "static_scaled_fp8_quant",
     "in x: bf16[n, 64], w: bf16[64]  y = rms_norm(x, w)  z = relu(y)  out z"},
    {"an input where a node should be", "add_norm", "N01", "rms_norm",
     "in x: bf16[n, 64], z: bf16[n, 64]  r = x + z  out r"},
    {"another number of results", "halves", "N02", "3 results",
     "in x: bf16[n, 192]  a, b, c = split(x){dim = 1, sizes = [64, 64, 64]}  y = silu(a) * b  out "
     "y, c"},
    {"operands in another order", "sub_relu", "N03", "operand 1",
     "in x: f32[n], z: f32[n]  y = sub(z, relu(x))  out y"},
    {"an attribute that is not at its default", "default_norm_quant", "N04", "default, 1e-06",
     "in x: bf16[n, 64], w: bf16[64], s: f32[1]  y = rms_norm(x, w){eps = 1e-5}  q = "
     "static_scaled_fp8_quant(y, s)  out q"},
    {"another axis", "halves", "N04", "`dim`",
     "in x: bf16[128, 64]  a, b = split(x){dim = 0, sizes = [64, 64]}  y = silu(a) * b  out y"},
    {"another number", "double", "N04", "3.0", "in x: f32[n]  y = x * 3.0  out y"},
    {"another dtype", "norm_quant", "N05", "w: f32[64] is not T[d] with T = bf16",
     "in x: bf16[n, 64], w: f32[64], s: f32[1]  y = rms_norm(x, w)  q = static_scaled_fp8_quant(y, "
     "s)  out q"},
    {"another shape", "add_norm", "N06", "64",
     "in x: bf16[n, 64], b: bf16[64], w: bf16[64]  y = rms_norm(x + b, w)  out y"},
    {"halves of unequal size", "halves", "N06", "2 * d",
     "in x: bf16[n, 65]  a, b = split(x){dim = 1, sizes = [64, 1]}  y = silu(a) * b  out y"},
    {"a value that would be two", "square", "N07", "x is %x already",
     "in x: f32[n], z: f32[n]  y = x * z  out y"},
    {"an attribute that would be two", "same_eps", "N07", "1e-05",
     "in x: bf16[n, 64], w: bf16[64]  a = rms_norm(x, w){eps = 1e-5}  b = rms_norm(a, w){eps = "
     "1e-6}  out b"},
    {"a consumed value with another user", "norm_quant", "N08", "used by %z (relu)",
     "in x: bf16[n, 64], w: bf16[64], s: f32[1]  y = rms_norm(x, w)  q = "
     "static_scaled_fp8_quant(y, s)  z = relu(y)  out q, z"},
    {"a consumed value that is an output", "norm_quant", "N08", "an output of the graph",
     "in x: bf16[n, 64], w: bf16[64], s: f32[1]  y = rms_norm(x, w)  q = "
     "static_scaled_fp8_quant(y, s)  out q, y"},
    {"an input that the rule would replace", "difference", "N08", "`x` is %h",
     "in z: f32[n]  h = neg(z)  y = sub(h, h)  out y"},
    {"a guard that is false", "slice_all", "N09", "32 >= 64",
     "in x: f32[n, 64]  y = slice(x){dim = 1, end = 32}  out y"},
    {"a guard that is not known", "slice_all", "N06", "7 >= n",
     "in x: f32[n, 64]  y = slice(x){dim = 0, end = 7}  out y"},
    {"a path from an output to an input", "twins", "N13", "%h (relu)",
     "in x: bf16[n, 64], w: bf16[64]  a = rms_norm(x, w)  h = relu(a)  b = rms_norm(h, w)  z = "
     "relu(b)  out z"},
};

}  // namespace

TEST_CASE("matcher: every gate states its code and why", "[rewriter]") {
  World world(kRules);
  for (const Case& c : kCases) {
    INFO(c.name);
    Graph g = world.graph(c.graph);
    REQUIRE(world.matches(g, c.rule).empty());
    Rejection why = world.reason(g, c.rule);
    INFO(why.message);
    CHECK(why.code == c.code);
    CHECK_THAT(why.message, Contains(c.text));
    CHECK(why.span.valid());
    CHECK(why.at.valid());
  }
}

TEST_CASE(
    "matcher: match_at gives the reason at its anchor, and explain none where the rule matches",
    "[rewriter]") {
  World world(kRules);
  Graph g = world.graph(
      "in x: bf16[n, 64], w: bf16[64], s: f32[1]  y = rms_norm(x, w)  q = "
      "static_scaled_fp8_quant(y, s)  z = relu(x)  out q, z");
  RuleId rule = world.rule("norm_quant");
  Rejection why;
  REQUIRE_FALSE(match_at(g, world.rules, rule, g.producer(g.find_value("z")), world.params, &why));
  CHECK(why.code == "N01");
  REQUIRE(match_at(g, world.rules, rule, g.producer(g.find_value("y")), world.params));
  CHECK_FALSE(explain(g, world.rules, rule, world.params));
  Graph other = world.graph("in x: f32[n]  y = relu(x)  out y");
  CHECK_FALSE(explain(other, world.rules, rule, world.params));
}

TEST_CASE("matcher: the operands of a commutative op match in both orders", "[rewriter]") {
  World world(R"(
rule gate { y = mul(silu(g), u)  => y = mul(u, relu(g)) }
rule plain { y = add(a, b)  => y = add(b, a) }
)");
  for (const char* product : {"y = silu(a) * b", "y = b * silu(a)"}) {
    Graph g = world.graph(std::string("in a: f32[n], b: f32[n]  ") + product + "  out y");
    std::vector<Match> found = world.matches(g, "gate");
    REQUIRE(found.size() == 1);
    CHECK(std::get<ValueId>(found[0].env.at("g")) == g.find_value("a"));
    CHECK(std::get<ValueId>(found[0].env.at("u")) == g.find_value("b"));
  }
  // One match per set of nodes, and the written order is tried first.
  Graph g = world.graph("in a: f32[n], b: f32[n]  y = add(a, b)  out y");
  std::vector<Match> found = world.matches(g, "plain");
  REQUIRE(found.size() == 1);
  CHECK(std::get<ValueId>(found[0].env.at("a")) == g.find_value("a"));
}

TEST_CASE("matcher: pattern nodes match distinct nodes, values may coincide", "[rewriter]") {
  World world(R"(
op pair(x: T[*s], z: T[*s]) -> (a: T[*s], b: T[*s])
rule siblings { a = relu(x)  b = relu(x)  => a, b = pair(x, x) }
rule two_inputs { y = sub(p, q)  => y = neg(sub(q, p)) }
)");
  Graph one = world.graph("in x: f32[n]  a = relu(x)  out a");
  CHECK(world.matches(one, "siblings").empty());
  CHECK(world.reason(one, "siblings").code == "N07");
  Graph two = world.graph("in x: f32[n]  a = relu(x)  b = relu(x)  out a, b");
  CHECK(world.matches(two, "siblings").size() == 1);  // not one for each order
  Graph same = world.graph("in x: f32[n]  y = sub(x, x)  out y");
  CHECK(world.matches(same, "two_inputs").size() == 1);
}

TEST_CASE("matcher: none, an optional operand, and a plain name", "[rewriter]") {
  World world(R"(
op blend(x: T[*s], y: T[*s]?) -> z: T[*s]
rule without { z = blend(x, none)  => z = relu(x) }
rule either { z = blend(x, y?)  => z = blend(relu(x), y?) }
rule with { z = blend(x, y)  => z = add(x, y) }
)");
  Graph absent = world.graph("in x: f32[n]  z = blend(x, none)  out z");
  CHECK(world.matches(absent, "without").size() == 1);
  CHECK(world.matches(absent, "either").size() == 1);
  CHECK(world.matches(absent, "with").empty());
  CHECK(world.reason(absent, "with").code == "N02");
  Graph present = world.graph("in x: f32[n], y: f32[n]  z = blend(x, y)  out z");
  CHECK(world.matches(present, "without").empty());
  CHECK(world.reason(present, "without").code == "N02");
  CHECK(world.matches(present, "either").size() == 1);
  CHECK(world.matches(present, "with").size() == 1);
}

TEST_CASE("matcher: numbers match constants, names capture them", "[rewriter]") {
  World world(R"(
rule square { y = pow(x, 2)  => y = mul(x, x) }
rule shifted { y = rsqrt(add(m, eps))  z = rms_norm(y, w){eps}  => z = rms_norm(m, w){eps} }
)");
  Graph g =
      world.graph("in x: f32[n]  y = pow(x, 2.0)  z = pow(x, 3.0)  v = pow(x, x)  out y, z, v");
  CHECK(world.matches(g, "square").size() == 1);
  Graph equal = world.graph(
      "in m: f32[n, 64], w: f32[64]  y = rsqrt(m + 1e-5)  z = rms_norm(y, w){eps = 1e-5}  out z");
  std::vector<Match> found = world.matches(equal, "shifted");
  REQUIRE(found.size() == 1);
  CHECK(std::get<double>(std::get<Attribute>(found[0].env.at("eps"))) == 1e-5);
  Graph other = world.graph(
      "in m: f32[n, 64], w: f32[64]  y = rsqrt(m + 1e-6)  z = rms_norm(y, w){eps = 1e-5}  out z");
  CHECK(world.reason(other, "shifted").code == "N07");
}

TEST_CASE("matcher: attribute expressions wait for their variables", "[rewriter]") {
  World world(R"(
rule part {
  y = slice(x){dim = 1, start = a, end = a + k, step = 1}
  z = slice(y){dim = 1, start = 0, end = k / 2, step = 1}
  where k > 1
  => z = slice(x){dim = 1, start = a, end = a + k / 2, step = 1}
}
)");
  Graph g = world.graph(
      "in x: f32[8, 64]  y = slice(x){dim = 1, start = 8, end = 24}  z = slice(y){dim = 1, end = "
      "8}  out z");
  REQUIRE(world.matches(g, "part").size() == 1);
  Graph other = world.graph(
      "in x: f32[8, 64]  y = slice(x){dim = 1, start = 8, end = 24}  z = slice(y){dim = 1, end = "
      "7}  out z");
  CHECK(world.matches(other, "part").empty());
}

TEST_CASE("matcher: a given node may have other users, and is not consumed", "[rewriter]") {
  World world(R"(
rule chain { given { h = reshape(x){..} }  y = reshape(h){shape}  => y = reshape(x){shape} }
)");
  Graph g = world.graph(R"(in x: bf16[n, 64]
    h = reshape(x){shape = [n, 8, 8]}
    y = reshape(h){shape = [n, 4, 16]}
    z = relu(h)
    out y, z)");
  std::vector<Match> found = world.matches(g, "chain");
  REQUIRE(found.size() == 1);
  REQUIRE(apply_match(g, world.rules, found[0]));
  require_same(g, world.graph(R"(in x: bf16[n, 64]
    h = reshape(x){shape = [n, 8, 8]}
    y = reshape(x){shape = [n, 4, 16]}
    z = relu(h)
    out y, z)"));
}

TEST_CASE("matcher: a rule whose op is not there is left out until a rewrite makes one",
          "[rewriter]") {
  World world(R"(
rule spell { y = silu(x)  => y = x * sigmoid(x) }
rule square { y = neg(-x)  => y = abs(x) }
rule turn { y = relu(x)  => y = -(-x) }
rule halve { y = mul(a, sigmoid(a))  => y = sin(a) }
rule never { y = exp(log(x))  => y = x }
pass p = greedy { spell, square, turn, halve, never }
pass o = once { spell, square, turn, halve, never }
pass w = walk { spell, square, turn, halve, never }
)");
  const char* body = "in x: f32[n]  a = silu(x)  b = relu(a)  c = tanh(b)  out c";
  const Graph start = world.graph(body);
  const std::string program = print_programs(start, world.rules, *world.rules.strategy("p"));
  CHECK_THAT(program, Contains("`never` is left out: the graph has no `log`"));
  CHECK_THAT(program, Contains("`square` is left out: the graph has no `neg`"));
  CHECK_THAT(program, !Contains("accept `never`") && Contains("accept `spell`"));
  for (const char* pass : {"p", "o", "w"}) {
    INFO(pass);
    Graph g = start, naive = start;
    RewriteOptions options;
    options.engine = EngineKind::naive;
    const RewriteReport fast = world.run(g, pass), slow = world.run(naive, pass, options);
    CHECK(fast.journal.total() == slow.journal.total());
    require_same(g, naive);
  }
  Graph g = start;
  const RewriteReport report = world.run(g, "p");
  CHECK(report.journal.count(world.rules, "halve") == 1);
  CHECK(report.journal.count(world.rules, "square") == 1);
  require_same(g, world.graph("in x: f32[n]  a = sin(x)  b = abs(a)  c = tanh(b)  out c"));
}
