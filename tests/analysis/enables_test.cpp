// The order that results from what rules build and match.
#include "rewriter/analysis/enables.hpp"

#include "tests/rewriter/fixture.hpp"

using namespace pw;
using pw::test::World;

namespace {

std::vector<std::string> steps(const std::string& text) {
  World world(text);
  std::vector<std::string> out;
  for (const Enables::Entry& entry : find_enables(world.rules, all_rules(world.rules)).rules)
    out.push_back(std::to_string(entry.step) + " " + entry.name + (entry.in_cycle ? " *" : ""));
  return out;
}

}  // namespace

TEST_CASE("enables: a rule stands behind those that build what it matches", "[analysis]") {
  CHECK(steps("rule a { y = silu(x) => y = relu(x) }"
              "rule b { y = exp(x) => y = silu(x) }"
              "rule c { y = relu(x) => y = neg(x) }") ==
        std::vector<std::string>{"1 b", "2 a", "3 c"});
}

TEST_CASE("enables: the rules of a cycle share a step, and what follows comes behind",
          "[analysis]") {
  CHECK(steps("rule a { y = relu(x) => y = neg(x) }"
              "rule b { y = neg(x) => y = relu(x) }"
              "rule c { y = neg(relu(x)) => y = exp(x) }"
              "rule d { y = tanh(x) => y = relu(x) }") ==
        std::vector<std::string>{"1 d", "2 a *", "2 b *", "3 c"});
}

TEST_CASE("enables: casts, infix and what stands in given count", "[analysis]") {
  CHECK(steps("rule a { given { h = cast(x){..} } y = relu(h) => y = tanh(x) }"
              "rule b { y = silu(x: bf16) => y = bf16(f32(x) * f32(x)) }"
              "rule c { y = mul(x, z) => y = exp(x) }") ==
        std::vector<std::string>{"1 b", "2 a", "2 c"});
}

TEST_CASE("enables: in a picture, an arrow names the op", "[analysis]") {
  World world("rule a { y = silu(x) => y = relu(x) } rule b { y = relu(x) => y = neg(x) }");
  const std::string dot = enables_to_dot(find_enables(world.rules, all_rules(world.rules)));
  CHECK(dot.find("\"a\" -> \"b\" [label = \"relu\"]") != std::string::npos);
  CHECK(dot.find("\"b\" -> ") == std::string::npos);
}
