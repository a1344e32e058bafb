// Planted mistakes, one or more for each code: the near miss must have the right code and the right
// node, and there must be no other.
#include "rewriter/explain/explain.hpp"

#include <fstream>

#include "rewriter/explain/near_miss_codes.hpp"
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr const char* kAskedOps = R"(
op keep(x: T[*s], layer: U[*s]?) {k: int = 0} -> T[*s]
op write(mut x: T[*s], y: T[*s]) -> (z: T[*s] from x) effect
op gemm2(x: T[n, k], v: T[k, m], w: T[k, m]) -> (a: T[n, m], b: T[n, m])
)";

/// The rules of most cases: a norm and its quantisation, on top of a sum.
constexpr const char* kNorms = R"(
rule add_rms {
  r = add(x: T[*b, d], res: T[*b, d])
  y = rms_norm(r, w: T[d]){eps}
  =>
  y, r = fused_add_rms_norm(x, res, w){eps}
}
rule rms_quant {
  n = rms_norm(x: T[*b, d], w: T[d]){eps}
  q = static_scaled_fp8_quant(n, s: f32[1])
  =>
  q = rms_norm_static_fp8_quant(x, w, s){eps}
}
pass norm = greedy { add_rms }
pass quant = greedy { rms_quant }
pass both = greedy { add_rms, rms_quant }
pipeline late { norm quant }
pipeline without { norm }
)";

struct Planted {
  std::string name, rules, rule, graph, code, at;
  ExplainOptions options = {};
};

void check(const Planted& planted) {
  INFO(planted.name);
  World world(std::string(kAskedOps) + planted.rules);
  const Graph g = world.graph(planted.graph);
  Result<Explanation> found =
      explain_rules(g, world.rules, planted.rule, world.params, planted.options);
  if (!found) FAIL(render(found.error(), world.context->sources));
  std::string all;
  for (const NearMissGroup& group : found->groups)
    all += group.first.why.code + " " +
           (group.first.why.at.valid() ? std::string(g.node_name(group.first.why.at)) : "") + ": " +
           group.first.why.message + "\n";
  INFO(all);
  CHECK(found->groups.size() == 1);
  if (found->groups.empty()) return;
  const NearMiss& miss = found->groups.front().first;
  CHECK(found->groups.front().count == 1);
  CHECK(miss.why.code == planted.code);
  CHECK((miss.why.at.valid() ? std::string(g.node_name(miss.why.at)) : "") == planted.at);
  CHECK_FALSE(miss.why.message.empty());
}

std::string norm_graph(const std::string& middle,
                       const std::string& inputs = "in w: bf16[64], s: f32[1]") {
  return "in x: bf16[n, 64]  " + inputs + "  " + middle;
}

ExplainOptions with(const std::string& pipeline) {
  ExplainOptions out;
  out.pipeline = pipeline;
  return out;
}

}  // namespace

TEST_CASE("explain: planted mistakes in ops, arity and operands", "[rewriter]") {
  check({"another op", kNorms, "rms_quant",
         norm_graph("m = relu(x)  q = static_scaled_fp8_quant(m, s)  out q, w"), "N01", "m"});
  check({"a view in between", kNorms, "rms_quant",
         norm_graph("m = rms_norm(x, w){eps = 1e-6}  v = reshape(m){shape = [n, 64]}  "
                    "q = static_scaled_fp8_quant(v, s)  out q"),
         "N01", "v"});
  check({"no user with the op", kNorms, "rms_quant",
         norm_graph("m = rms_norm(x, w){eps = 1e-6}  q = relu(m)  out q, s"), "N01", "m"});
  check({"an absent operand", "rule r { y = keep(relu(x), l) => y = keep(x, l) }", "r",
         "in x: f32[4]  a = relu(x)  y = keep(a, none)  out y", "N02", "y"});
  check({"a present operand", "rule r { y = keep(relu(x), none) => y = relu(x) }", "r",
         "in x: f32[4], l: f32[4]  a = relu(x)  y = keep(a, l)  out y", "N02", "y"});
  check({"a swapped operand", "rule r { y = sub(relu(x), z) => y = sub(x, z) }", "r",
         "in x: f32[4], z: f32[4]  a = relu(x)  y = sub(z, a)  out y", "N03", "y"});
}

TEST_CASE("explain: planted mistakes in attributes and types", "[rewriter]") {
  check({"an attribute default", "rule r { y = keep(relu(x), l?) => y = keep(x, l) }", "r",
         "in x: f32[4]  a = relu(x)  y = keep(a, none){k = 1}  out y", "N04", "y"});
  check({"an attribute's value", "rule r { y = keep(relu(x), l?){k = 2} => y = keep(x, l) }", "r",
         "in x: f32[4]  a = relu(x)  y = keep(a, none){k = 1}  out y", "N04", "y"});
  check({"a mixed-dtype weight", kNorms, "rms_quant",
         norm_graph("m = rms_norm(x, w){eps = 1e-6}  q = static_scaled_fp8_quant(m, s)  out q",
                    "in w: f32[64], s: f32[1]"),
         "N05", "m"});
  check({"a wrong dtype", "rule r { y = relu(neg(x: bf16[*s])) => y = neg(x) }", "r",
         "in x: f32[4]  a = neg(x)  y = relu(a)  out y", "N05", "a"});
  check({"a shape that does not fit", "rule r { y = relu(neg(x: [n, 128])) => y = neg(x) }", "r",
         "in x: f32[n, 64]  a = neg(x)  y = relu(a)  out y", "N06", "a"});
  check({"an unprovable divisibility",
         "rule r { y = relu(neg(x: f32[n, d])) where n % 8 == 0 => y = neg(x) }", "r",
         "in x: f32[n, 4]  a = neg(x)  y = relu(a)  out y", "N06", "a"});
}

TEST_CASE("explain: planted mistakes in variables, users and guards", "[rewriter]") {
  check({"one name, two values", "rule r { y = sub(relu(x), x) => y = relu(x) }", "r",
         "in x: f32[4], z: f32[4]  a = relu(x)  y = sub(a, z)  out y", "N07", "y"});
  check({"an extra user", kNorms, "rms_quant",
         norm_graph("m = rms_norm(x, w){eps = 1e-6}  q = static_scaled_fp8_quant(m, s)  "
                    "o = silu(m)  out q, o"),
         "N08", "m"});
  check({"an output of the graph", kNorms, "rms_quant",
         norm_graph("m = rms_norm(x, w){eps = 1e-6}  q = static_scaled_fp8_quant(m, s)  out q, m"),
         "N08", "m"});
  check({"a false guard", "rule r { y = relu(neg(x: f32[n, d])) where d >= 128 => y = neg(x) }",
         "r", "in x: f32[n, 4]  a = neg(x)  y = relu(a)  out y", "N09", "a"});
  check({"a cycle", "rule r { a = mm(x, v)  b = mm(x, w)  => a, b = gemm2(x, v, w) }", "r",
         "in x: f32[8, 8], v: f32[8, 8]  a = mm(x, v)  c = relu(a)  b = mm(x, c)  out b", "N13",
         "c"});
  check({"an alias barrier", "rule r { a = relu(x)  y = neg(a) => y = abs(x) }", "r",
         "in buffer x: f32[8], z: f32[8]  a = relu(x)  c = write(x, z)  y = neg(a)  out y, c",
         "N14", "c"});
}

TEST_CASE("explain: planted mistakes in pipelines", "[rewriter]") {
  const std::string summed =
      "in x: bf16[n, 64], t: bf16[n, 64], w: bf16[64], s: f32[1]  r = add(x, t)  "
      "m = rms_norm(r, w){eps = 1e-6}  q = static_scaled_fp8_quant(m, s)  out q, r";
  check({"consumed by an earlier pass", kNorms, "rms_quant", summed, "N10", "m", with("late")});
  check({"not in the pipeline", kNorms, "rms_quant", summed, "N11", "", with("without")});
  check({"a pass that was left out",
         "param on: bool = false\n" + std::string(kNorms) + "pipeline off { quant when on }",
         "rms_quant", summed, "N11", "", with("off")});
  check({"out of fuel", "rule r { y = relu(relu(x)) => y = relu(x) }\npass p = greedy { r } fuel 1",
         "r",
         "in x: f32[4], z: f32[4]  a = relu(x)  y = relu(a)  b = relu(z)  c = relu(b)  out y, c",
         "N12", "b", with("p")});
  check({"lost to a rule above",
         "rule small { y = neg(relu(x)) => y = neg(x) }\n"
         "rule large over small { y = relu(x)  z = neg(y) => z = abs(x) }\n"
         "pass p = greedy { small, large }",
         "small", "in x: f32[4]  a = relu(x)  y = neg(a)  out y", "N16", "a", with("p")});
  check({"lost to cost",
         "rule cheap { y = neg(relu(x)) => y = abs(x) }\n"
         "rule dear { y = abs(sin(x)) => y = cos(x) }\n"
         "pass p = best of { greedy { dear } | greedy { cheap } } by nodes",
         "dear",
         "in x: f32[4], z: f32[4]  a = relu(x)  y = neg(a)  b = relu(z)  c = neg(b)  d = sin(x)  "
         "e = abs(d)  out y, c, e",
         "N16", "d", with("p")});
}

TEST_CASE("explain: a match across pieces", "[rewriter]") {
  ExplainOptions options;
  options.piece_of = [](const Graph& g, NodeId n) { return g.node_name(n) == "y" ? 1u : 0u; };
  check({"a piece boundary", "rule r { y = relu(neg(x)) => y = neg(x) }", "r",
         "in x: f32[4]  a = neg(x)  y = relu(a)  out y", "N15", "y", options});
}

TEST_CASE("explain: repeated layers are one group, and the odd one is found", "[rewriter]") {
  World world(kNorms);
  std::string text = "in x0: bf16[n, 64], s: f32[1], w: bf16[64], odd: f32[64]\n";
  for (int i = 0; i < 8; ++i) {
    const std::string k = std::to_string(i);
    text += "m" + k + " = rms_norm(x" + k + ", " + (i == 5 ? "odd" : "w") +
            "){eps = 1e-6}  @ \"layers." + k + ".norm\"\n";
    text += "q" + k + " = static_scaled_fp8_quant(m" + k + ", s)  @ \"layers." + k + ".norm\"\n";
    text += "x" + std::to_string(i + 1) + " = bf16(q" + k + ")\n";
  }
  const Graph g = world.graph(text + "out x8");
  const Result<Explanation> found = explain_rules(g, world.rules, "rms_quant", world.params);
  REQUIRE(found);
  CHECK(found->matches == 7);
  REQUIRE(found->groups.size() == 1);
  CHECK(found->groups.front().first.why.code == "N05");
  CHECK(found->groups.front().matched_alike == 7);
  CHECK(found->groups.front().count == 1);
  CHECK(found->groups.front().first.place == "layers.*.norm");
}

TEST_CASE("explain: the documentation has every code, and no other", "[rewriter][explain]") {
  std::ifstream file("docs/explain.md");
  REQUIRE(file);
  std::vector<std::string> stated, known;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("| N")) stated.push_back(line.substr(2, 3));
  for (const NearMissCode& row : kNearMissCodes) {
    known.emplace_back(row.code);
    CHECK(place_of(row.code) + 1 == known.size());
  }
  CHECK(stated == known);
}
