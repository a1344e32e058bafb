#include <algorithm>

#include "dsl/dsl.hpp"
#include "tests/catch.hpp"

namespace {

struct Loaded {
  pw::ContextPtr context = std::make_shared<pw::Context>();
  pw::RuleSet set;
};

Loaded load(const std::string& text) {
  Loaded loaded;
  auto set = pw::load_rule_texts(loaded.context, {{"test.pwr", text}});
  INFO((set ? std::string() : pw::render(set.error(), loaded.context->sources)));
  REQUIRE(set);
  loaded.set = std::move(*set);
  return loaded;
}

/// The ops of a rule's pattern, in order.
std::string ops(const Loaded& l, const pw::Rule& rule) {
  std::string text;
  for (const pw::PatternNode& node : rule.nodes)
    text += (text.empty() ? "" : " ") + l.context->ops[node.op].name;
  return text;
}

std::vector<std::string> all_ops(const Loaded& l) {
  std::vector<std::string> result;
  for (const pw::Rule& rule : l.set.rules) result.push_back(ops(l, rule));
  return result;
}

}  // namespace

TEST_CASE("patterns: an optional node gives a rule with it and one without it", "[dsl]") {
  auto l = load("rule r { y = relu(neg?(abs(x))) => y = abs(x) }");
  CHECK(all_ops(l) == std::vector<std::string>{"abs neg relu", "abs relu"});
  CHECK(l.set.rules[pw::RuleId(0)].name == "r#0");
  CHECK(l.set.resolve("r").size() == 2);
  CHECK(l.set.resolve("r#1").size() == 1);
}

TEST_CASE("patterns: an optional cast matches any dtype", "[dsl]") {
  auto l = load("rule r { y = relu(cast?(x)) => y = maximum(cast(x){dtype = y.dtype}, 0) }");
  REQUIRE(l.set.rules.size() == 2);
  CHECK(l.set.rules[pw::RuleId(0)].nodes[pw::PatternNodeId(0)].open);
}

TEST_CASE(
    "patterns: each alternative is a variant; inner names stay apart, operands and attributes go "
    "through",
    "[dsl]") {
  auto l = load(R"(
    pattern norm(x, w){eps} -> y {
        y = rms_norm(x, w){eps}
      | v = mean(pow(x, 2)){dim = -1, keepdim = true}
        y = mul(mul(x, rsqrt(add(v, eps))), w)
    }
    rule r {
      v = relu(norm(neg(x: f32[*b, d]), w: f32[d]){eps})
      y = norm(v, w){eps}
      =>
      y = rms_norm(rms_norm(neg(x), w){eps}, w){eps}
    })");
  CHECK(all_ops(l) == std::vector<std::string>{
                          "neg rms_norm relu rms_norm",
                          "neg rms_norm relu pow mean add rsqrt mul mul",
                          "neg pow mean add rsqrt mul mul relu rms_norm",
                          "neg pow mean add rsqrt mul mul relu pow mean add rsqrt mul mul",
                      });
  const pw::Rule& last = l.set.rules[pw::RuleId(3)];
  CHECK(last.values[last.value_named("eps")].attribute_variable);
  CHECK(last.values[last.value_named("x")].types.size() == 1);
  CHECK(last.values[last.value_named("w")].types.size() == 1);
  CHECK(last.outputs == std::vector<std::string>{"y"});
  CHECK(last.values[last.value_named("v")].producer.valid());
  CHECK_FALSE(l.set.rules[pw::RuleId(0)].value_named("eps").valid());
}

TEST_CASE("patterns: an alternative that is its operand makes another name for it", "[dsl]") {
  auto l = load(R"(
    pattern views(x) -> y { y = x | y = reshape(x){..} }
    rule r { f = relu(views(neg(x))) => f = neg(maximum(x, 0)) })");
  CHECK(all_ops(l) == std::vector<std::string>{"neg relu", "neg reshape relu"});
}

TEST_CASE("patterns: with families, a row names all of its variants", "[dsl]") {
  auto l = load(R"(
    table Acts (act) { r: relu  n: neg }
    rule f for k in Acts { y = k.act(abs?(x)) => y = k.act(x) })");
  CHECK(l.set.rules.size() == 4);
  CHECK(l.set.resolve("f[n]").size() == 2);
  CHECK(l.set.resolve("f[*]").size() == 4);
  CHECK(l.set.resolve("f").size() == 4);
}

TEST_CASE("patterns: `assume` is held to what `where` is", "[dsl]") {
  auto l = load(
      "param tp: int = 1\nrule r { y = relu(x: T[n, d]) where d >= 8 assume n % tp == 0 => y = "
      "maximum(x, 0) }");
  CHECK(l.set.rules[pw::RuleId(0)].where.size() == 2);
}

TEST_CASE("patterns: an optional node written twice over one value is one node", "[dsl]") {
  auto l = load("rule r { y = mul(abs?(x), neg(abs?(x))) => y = neg(pow(x, 2)) }");
  CHECK(all_ops(l) ==
        std::vector<std::string>{"abs neg mul", "abs neg mul", "abs neg mul", "neg mul"});
  const pw::Rule& both = l.set.rules[pw::RuleId(0)];
  const pw::PatternNode& mul = both.nodes[pw::PatternNodeId(2)];
  const pw::PatternNode& neg = both.nodes[pw::PatternNodeId(1)];
  CHECK(mul.operands[0] == neg.operands[0]);
}
