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
  CHECK(difference("in x: f32[4]  a = neg(x)  out a", "in x: f32[4]  b = abs(x)  out b") ==
        "  in x: f32[4]\n- a: f32[4] = neg(x)\n+ b: f32[4] = abs(x)\n- out a\n+ out b\n");
}

TEST_CASE(
    "isomorphism: one difference is one, and shows its neighbours, in the second graph's names",
    "[verify]") {
  const auto graph = [](const std::string& middle, const std::string& prefix) {
    const std::string p = prefix;
    return "in x: f32[4], far: f32[4]  " + p + "a = neg(x)  " + p + "b = abs(" + p + "a)  " + p +
           "c = " + middle + "(" + p + "b)  " + p + "d = sin(" + p + "c)  " + p + "e = cos(" + p +
           "d)  " + p + "f = add(" + p + "e, far)  out " + p + "f";
  };
  CHECK(difference(graph("relu", "old_"), graph("silu", "")) ==
        "  …\n"
        "  b: f32[4] = abs(a)\n"
        "- old_c: f32[4] = relu(b)\n"
        "- d: f32[4] = sin(old_c)\n"
        "+ c: f32[4] = silu(b)\n"
        "+ d: f32[4] = sin(c)\n"
        "  e: f32[4] = cos(d)\n"
        "  …\n"
        "  out f\n");
}

TEST_CASE("isomorphism: a node that is missing, an attribute, swapped operands, an output",
          "[verify]") {
  const std::string base =
      "in x: f32[4, 4], y: f32[4, 4]  a = sub(x, y)  b = sum(a){dim = 0}  out b";
  CHECK(difference(base,
                   "in x: f32[4, 4], y: f32[4, 4]  a = sub(x, y)  b = sum(a){dim = 1}  out b") ==
        "  …\n"
        "  a: f32[4, 4] = sub(x, y)\n"
        "- b: f32[4] = sum(a){dim = 0, keepdim = false}\n"
        "+ b: f32[4] = sum(a){dim = 1, keepdim = false}\n"
        "- out b\n"
        "+ out b\n");
  CHECK(difference(base,
                   "in x: f32[4, 4], y: f32[4, 4]  a = sub(y, x)  b = sum(a){dim = 0}  out b") ==
        "  in x: f32[4, 4]\n"
        "  in y: f32[4, 4]\n"
        "- a: f32[4, 4] = sub(x, y)\n"
        "+ a: f32[4, 4] = sub(y, x)\n"
        "  b: f32[4] = sum(a){dim = 0, keepdim = false}\n"
        "  out b\n");
  CHECK(difference(base, "in x: f32[4, 4], y: f32[4, 4]  b = sum(x){dim = 0}  out b") ==
        "  in x: f32[4, 4]\n"
        "  in y: f32[4, 4]\n"
        "- a: f32[4, 4] = sub(x, y)\n"
        "- b: f32[4] = sum(a){dim = 0, keepdim = false}\n"
        "+ b: f32[4] = sum(x){dim = 0, keepdim = false}\n"
        "  out b\n");
}

TEST_CASE("isomorphism: computing twice what is shared is reported as such", "[verify]") {
  CHECK(difference("in x: f32[4]  a = neg(x)  b = neg(x)  c = sub(a, b)  out c",
                   "in x: f32[4]  a = neg(x)  c = sub(a, a)  out c")
            .find("- b: f32[4] = neg(x)") != std::string::npos);
}
