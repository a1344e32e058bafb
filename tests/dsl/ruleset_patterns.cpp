#include <algorithm>

#include "dsl/run_rules.hpp"
#include "tests/dsl/loaded.hpp"

namespace {

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

TEST_CASE("patterns: `assume` is kept apart from `where`", "[dsl]") {
  auto l = load(
      "param tp: int = 1\nrule r { y = relu(x: T[n, d]) where d >= 8 assume n % tp == 0 => y = "
      "maximum(x, 0) }");
  CHECK(l.set.rules[pw::RuleId(0)].where.size() == 1);
  CHECK(l.set.rules[pw::RuleId(0)].assume.size() == 1);
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

TEST_CASE("patterns: `given` and `where` of a pattern become those of the rule", "[dsl]") {
  auto l = load(R"(
    pattern wide(x) -> y { given { h = abs(x: f32[n, d]) } y = relu(h) where d >= 8 }
    rule r { z = neg(wide(x)) => z = maximum(x, 0) })");
  REQUIRE(all_ops(l) == std::vector<std::string>{"abs relu neg"});
  const pw::Rule& r = l.set.rules[pw::RuleId(0)];
  CHECK(r.nodes[pw::PatternNodeId(0)].given);
  CHECK_FALSE(r.nodes[pw::PatternNodeId(1)].given);
  CHECK(r.where.size() == 1);
}

namespace {

constexpr const char* kViews = R"(
  pattern rec views(x) -> y { y = x | y = reshape(views(x)){..} | y = transpose(views(x)){..} }
  rule r { f = relu(views(abs(x))) => f = relu(abs(x)) })";

}  // namespace

TEST_CASE("patterns: a recursive pattern is open two levels deep, with frontiers below", "[dsl]") {
  auto l = load(kViews);
  CHECK(all_ops(l) == std::vector<std::string>{
                          "abs relu",
                          "abs reshape relu",
                          "abs reshape reshape relu",
                          "abs transpose reshape relu",
                          "abs transpose relu",
                          "abs reshape transpose relu",
                          "abs transpose transpose relu",
                          "reshape reshape reshape relu",
                          "transpose reshape reshape relu",
                          "reshape transpose reshape relu",
                          "transpose transpose reshape relu",
                          "reshape reshape transpose relu",
                          "transpose reshape transpose relu",
                          "reshape transpose transpose relu",
                          "transpose transpose transpose relu",
                      });
  for (std::size_t i = 0; i < l.set.rules.size(); ++i)
    CHECK(l.set.rules[pw::RuleId(i)].frontier == (i >= 7));
  CHECK(l.set.rules[pw::RuleId(7)].name == "r#+0");
}

TEST_CASE("patterns: a frontier opens to the variants one level deeper, once", "[dsl]") {
  auto l = load(kViews);
  pw::RunRules rules(l.set);
  const std::vector<pw::RuleId> opened = rules.open(pw::RuleId(7), l.context);
  REQUIRE(opened.size() == 3);
  CHECK(ops(l, rules[opened[0]]) == "abs reshape reshape reshape relu");
  CHECK(ops(l, rules[opened[1]]) == "reshape reshape reshape reshape relu");
  CHECK(ops(l, rules[opened[2]]) == "transpose reshape reshape reshape relu");
  CHECK_FALSE(rules[opened[0]].frontier);
  CHECK(rules[opened[1]].frontier);
  CHECK(rules[opened[0]].name == "r#+0.0");
  CHECK(rules[opened[2]].name == "r#+0+1");
  CHECK(rules[opened[2]].rank == l.set.rules[pw::RuleId(7)].rank);
  CHECK(rules.open(pw::RuleId(7), l.context) == opened);
  CHECK(rules.size() == 18);
  CHECK(l.set.rules.size() == 15);
  const std::vector<pw::RuleId> deeper = rules.open(opened[2], l.context);
  REQUIRE(deeper.size() == 3);
  CHECK(ops(l, rules[deeper[0]]) == "abs transpose reshape reshape reshape relu");
}

TEST_CASE("patterns: names and ranks do not depend on the order in which frontiers are opened",
          "[dsl]") {
  const auto l = load(kViews);
  using Rows = std::vector<std::tuple<std::string, int, std::string>>;
  const auto opened = [&](std::size_t first, std::size_t second) {
    pw::RunRules rules(l.set);
    rules.open(pw::RuleId(first), l.context);
    rules.open(pw::RuleId(second), l.context);
    Rows out;
    for (std::size_t i = 0; i < rules.size(); ++i)
      out.emplace_back(rules[pw::RuleId(i)].name, rules[pw::RuleId(i)].rank,
                       ops(l, rules[pw::RuleId(i)]));
    return out;
  };
  Rows one = opened(7, 9), other = opened(9, 7);
  CHECK(one != other);
  std::sort(one.begin(), one.end());
  std::sort(other.begin(), other.end());
  CHECK(one == other);
}

TEST_CASE("patterns: two recursive uses keep one frontier for each way that one of them is closed",
          "[dsl]") {
  auto l = load(R"(
    pattern rec flat(x) -> y { y = x | y = reshape(flat(x)){..} }
    pattern spelt(x) -> y { y = neg(x) | y = sub(0, x) | y = mul(x, -1) }
    rule r { y = add(flat(spelt(a)), flat(spelt(b))) => y = neg(add(a, b)) })");
  std::size_t frontiers = 0;
  for (const pw::Rule& rule : l.set.rules) frontiers += rule.frontier ? 1 : 0;
  CHECK(frontiers == 7);
  CHECK(l.set.rules.size() == 3 * 3 * 3 * 3 + 7);
}
