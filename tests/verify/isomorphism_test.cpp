// Equality of graphs up to names, and its diff.
#include "verify/isomorphism.hpp"

#include "tests/verify/rules.hpp"

namespace {

using namespace pw;
using namespace pw::test;

std::string difference(const std::string& expected, const std::string& actual) {
  const auto context = std::make_shared<Context>();
  REQUIRE(load_op_library(context));
  return graph_difference(parse_graph(context, "graph a { " + expected + " }", "a").value(),
                          parse_graph(context, "graph b { " + actual + " }", "b").value());
}

}  // namespace

TEST_CASE("isomorphism: names, order and the sides of a sum do not count", "[verify]") {
  CHECK(difference("in x: f32[n], y: f32[n]  a = neg(x)  b = abs(y)  c = a + b  out c",
                   "in y: f32[n], x: f32[n]  q = abs(y)  p = neg(x)  r = q + p  out r")
            .empty());
  CHECK(difference("in x: f32[n]  a = neg(x)  out a",
                   "in x: f32[n]  dead = abs(x)  a = neg(x)  out a")
            .empty());
}

TEST_CASE("isomorphism: ops, attributes, wiring, types and outputs count", "[verify]") {
  const std::string base =
      "in x: f32[n, 4], y: f32[n, 4]  a = sub(x, y)  b = sum(a){dim = 1}  out a, b";
  for (const std::string other : {
           "in x: f32[n, 4], y: f32[n, 4]  a = sub(y, x)  b = sum(a){dim = 1}  out a, b",
           "in x: f32[n, 4], y: f32[n, 4]  a = sub(x, y)  b = sum(a){dim = 0}  out a, b",
           "in x: f32[n, 4], y: f32[n, 4]  a = sub(x, y)  b = amax(a){dim = 1}  out a, b",
           "in x: f32[n, 4], y: f32[n, 4]  a = sub(x, y)  b = sum(a){dim = 1}  out b, a",
           "in x: bf16[n, 4], y: bf16[n, 4]  a = sub(x, y)  b = sum(a){dim = 1}  out a, b",
           "in x: f32[n, 4], y: f32[n, 4]  a = sub(x, y)  c = sub(x, y)  b = sum(c){dim = 1}  out "
           "a, b",
       }) {
    INFO(other);
    CHECK(!difference(base, other).empty());
  }
}

TEST_CASE("isomorphism: the diff marks what is on one side only", "[verify]") {
  const std::string text =
      difference("in x: f32[4]  a = neg(x)  out a", "in x: f32[4]  b = abs(x)  out b");
  CHECK(text.find("- v0: f32[4] = neg(x)\n") != std::string::npos);
  CHECK(text.find("+ v1: f32[4] = abs(x)\n") != std::string::npos);
  CHECK(text.find("  in x: f32[4]\n") != std::string::npos);
}
