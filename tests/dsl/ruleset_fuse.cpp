#include <algorithm>

#include "graph/text/graph_json.hpp"
#include "graph/text/text.hpp"
#include "tests/dsl/loaded.hpp"

TEST_CASE("fuse: operands in first use, results in binder order, captured attributes", "[dsl]") {
  const Loaded l = load(R"(rule r {
    y, s = fused_add_rms_norm(x: T[*b, d], res, w: T[d]){eps}
    q = static_scaled_fp8_quant(y, scale: f32[1])
    =>
    q, s = fuse
  })");
  CHECK(l.declaration("r") ==
        "op r(x: T[*b, d], res, w: T[d], scale: f32[1]) {eps: float} -> (q, s) {; "
        "y, s = fused_add_rms_norm(x, res, w){eps = eps}; q = static_scaled_fp8_quant(y, scale) }");
  CHECK(l.right(0) == "q, s = r(x, res, w, scale){eps = eps}");
}

TEST_CASE("fuse: what the pattern opens is captured, and literals are fixed", "[dsl]") {
  const Loaded l = load(R"(rule r {
    h = reshape(sum(x: f32[n, d]){dim = -1, keepdim = true}){..}
    y = mul(h, 2.0)
    =>
    y = fuse
  })");
  CHECK(l.declaration("r") ==
        "op r(x: f32[n, d]) {shape_a0: dims} -> y {; h_1 = sum(x){dim = -1, keepdim = true}; "
        "h = reshape(h_1){shape = shape_a0}; y = mul(h, 2.0) }");
}

TEST_CASE("fuse: dims that a type of an operand binds are not attributes, others are", "[dsl]") {
  const Loaded l = load(R"(rule r {
    a, b = split(x: T[n, 2 * d]){dim = -1, sizes = [d, d]}
    y = reshape(mul(a, T(b))){shape = [n, h, k]}
    => y = fuse
  })");
  CHECK(l.declaration("r").find("op r(x: T[n, 2 * d]) {h: int, k: int} -> y") == 0);
}

TEST_CASE("fuse: values of `given` are operands", "[dsl]") {
  const Loaded l = load("rule r { given { h = relu(x) } y = neg(abs(h)) => y = fuse }");
  CHECK(l.declaration("r") == "op r(h) -> y {; h_2 = abs(h); y = neg(h_2) }");
  CHECK(l.right(0) == "y = r(h)");
}

TEST_CASE("fuse: a variant's number is part of the op's name", "[dsl]") {
  const Loaded l = load("rule r { y = relu(neg?(x)) => y = fuse }");
  CHECK(l.declaration("r#1") == "op `r#1`(x) -> y {; y = relu(x) }");
  CHECK(l.declaration("r#0") == "op `r#0`(x) -> y {; neg_x = neg(x); y = relu(neg_x) }");
}

TEST_CASE("fuse: a graph carries the op, in text and in JSON", "[dsl]") {
  const Loaded l = load("rule r { y = relu(neg?(x: f32[*s])) => y = fuse }");
  auto graph = pw::parse_graph(l.context, "graph g { in x: f32[4] y = `r#0`(x) out y }", "g.pwg");
  REQUIRE(graph);
  const std::string text = print_pwg(*graph);
  CHECK(text.find("op `r#0`(x: f32[*s]) -> y {\n") != std::string::npos);
  const std::string json = graph_to_json(*graph);
  auto fresh = std::make_shared<pw::Context>();
  REQUIRE(load_op_library(fresh));
  auto again = pw::parse_graph(fresh, text, "g.pwg");
  INFO((again ? std::string() : pw::render(again.error(), fresh->sources)));
  REQUIRE(again);
  CHECK(print_pwg(*again) == text);
  auto other = std::make_shared<pw::Context>();
  REQUIRE(load_op_library(other));
  auto from_json = pw::graph_from_json(other, json, "g.json", pw::parse_op);
  INFO((from_json ? std::string() : pw::render(from_json.error(), other->sources)));
  REQUIRE(from_json);
  CHECK(graph_to_json(*from_json) == json);
}

TEST_CASE("equivalence: two rules, and types hold for both", "[dsl]") {
  const Loaded l = load("rule r { y = relu(x: f32[n, d]) <=> y = maximum(x, 0) }");
  REQUIRE(l.set.rules.size() == 2);
  const pw::Rule& back = l.set.rules[pw::RuleId(1)];
  CHECK(back.name == "r[backward]");
  CHECK(l.context->ops[back.nodes[pw::PatternNodeId(0)].op].name == "maximum");
  CHECK(back.values[back.value_named("x")].types.size() == 1);
  CHECK(l.right(0) == "y = maximum(x, 0)");
  CHECK(l.right(1) == "y = relu(x)");
  CHECK(l.set.resolve("r[forward]").size() == 1);
  CHECK(l.set.resolve("r").size() == 2);
  CHECK(l.set.strategy("r") == nullptr);
  CHECK(l.set.strategy("r[forward]") != nullptr);
}
