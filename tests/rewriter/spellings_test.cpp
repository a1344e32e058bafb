// Patterns and nodes that are written in different ways and mean the same.
#include "rewriter/explain/explain.hpp"
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using namespace pw::test;

namespace {

/// Both engines find so many matches of rule `r`.
void check_matches(const std::string& rule, const std::string& graph, std::size_t wanted) {
  INFO(rule);
  INFO(graph);
  const World world(rule + "\npass p = once { r }");
  Graph g = world.graph(graph);
  CHECK(world.matches(g, "r").size() == wanted);
  CHECK(world.fired(g, "p", "r") == wanted);
}

std::string help_of(const std::string& rule, const std::string& graph) {
  const World world(rule);
  const Graph g = world.graph(graph);
  Result<Explanation> found = explain_rules(g, world.rules, "r", world.params, {});
  if (!found) FAIL(render(found.error(), world.context->sources));
  REQUIRE(found->groups.size() == 1);
  const NearMiss& miss = found->groups.front().first;
  return miss.why.code + ": " + miss.why.message + ": " + miss.help;
}

constexpr const char* kTransposes = R"(in k: f32[4, 6, 8]
  a = neg(transpose(k){dim0 = -1, dim1 = -2})
  b = neg(transpose(k){dim0 = 1, dim1 = 2})
  c = neg(transpose(k){dim0 = 2, dim1 = 1})
  d = neg(transpose(k){dim0 = 0, dim1 = 2})
  out a, b, c, d)";

std::string transposed(const std::string& axes, const std::string& more = "") {
  return "rule r { y = neg(transpose(k){" + axes + "}) " + more + " => y = relu(k) }";
}

}  // namespace

TEST_CASE("spellings: a pattern writes the axes of a transpose in any order", "[rewriter]") {
  for (const char* axes :
       {"dim0 = 1, dim1 = 2", "dim0 = 2, dim1 = 1", "dim0 = -1, dim1 = -2", "dim0 = -2, dim1 = 2"})
    check_matches("rule r { y = neg(transpose(k: [a, b, c]){" + std::string(axes) +
                      "})  => y = transpose(neg(k)){dim0 = 1, dim1 = 2} }",
                  kTransposes, 3);
  check_matches(
      "rule r { y = neg(transpose(k: [a, b, c]){dim0 = 2, dim1 = 0})  => y = "
      "transpose(neg(k)){dim0 "
      "= 0, dim1 = 2} }",
      kTransposes, 1);
}

TEST_CASE("spellings: a free axis of a transpose is the one that the other leaves", "[rewriter]") {
  const std::string right = " => y = transpose(neg(k)){dim0 = a, dim1 = 2} }";
  check_matches("rule r { y = neg(transpose(k){dim0 = a, dim1 = 2})  where a == 1" + right,
                kTransposes, 3);
  check_matches("rule r { y = neg(transpose(k){dim0 = 2, dim1 = a})  where a == 0" + right,
                kTransposes, 1);
  check_matches(
      "rule r { y = neg(transpose(k){dim0 = a, dim1 = b})  where a < b => y = "
      "transpose(neg(k)){dim0 = b, dim1 = a} }",
      kTransposes, 4);
  check_matches("rule r { y = transpose(k){dim0 = a, dim1 = a}  => y = k }",
                "in k: f32[4, 4]  y = transpose(k){dim0 = 0, dim1 = 1}  out y", 0);
}

TEST_CASE("spellings: another op states which axis of a transpose is which", "[rewriter]") {
  for (const char* dim : {"0", "1"})
    for (const char* axes : {"dim0 = 0, dim1 = 1", "dim0 = 1, dim1 = 0"})
      check_matches(
          "rule r { y = sum(transpose(a: T[*s]){dim0 = p, dim1 = q}){dim = p, keepdim = true}"
          " => y = transpose(sum(a){dim = q, keepdim = true}){dim0 = p, dim1 = q} }",
          "in a: f32[4, 5, 6]  t = transpose(a){" + std::string(axes) +
              "}  y = sum(t){dim = " + dim + ", keepdim = true}  out y",
          1);
}

TEST_CASE("spellings: equal transposes are one node after cse", "[rewriter]") {
  const World world("rule r { y = neg(x) => y = x }");
  Graph g = world.graph(kTransposes);
  CHECK(eliminate_common(g) == 4);
  CHECK(count(g, "transpose") == 2);
}

TEST_CASE("spellings: a bound of a slice in a pattern may count from the end", "[rewriter]") {
  const std::string graph = R"(in x: f32[4, 8]
    a = neg(slice(x){dim = 1, start = 4, end = 7})
    b = neg(slice(x){dim = 1, start = -4, end = -1})
    c = neg(slice(x){dim = 1, start = 4, end = 8})
    out a, b, c)";
  check_matches(
      "rule r { y = neg(slice(x){dim = -1, start = -4, end = -1})  => y = slice(neg(x)){dim = -1, "
      "start = 4, end = 7} }",
      graph, 2);
}

TEST_CASE("spellings: numbers are compared in the dtype of the op", "[rewriter]") {
  const std::string rule = "rule r { y = div(x, 1.4142135623730951)  => y = neg(x) }";
  check_matches(rule, "in x: f32[n]  y = div(x, 1.4142135381698608)  out y", 1);
  check_matches(rule, "in x: bf16[n]  y = div(x, 1.4142135381698608)  out y", 1);
  check_matches(rule, "in x: f64[n]  y = div(x, 1.4142135381698608)  out y", 0);
  check_matches(rule, "in x: f32[n]  y = div(x, 1.41421354)  out y", 1);
  check_matches(rule, "in x: f32[n]  y = div(x, 1.4142)  out y", 0);
  check_matches(
      rule,
      "in x: f32[n]  c = full(){shape = [], value = 1.4142135, dtype = f32}  y = div(x, c)  out y",
      1);
  check_matches(rule,
                "in x: f64[n]  c = full(){shape = [], value = 1.4142135623730951, dtype = f32}  y "
                "= div(x, c)  out y",
                0);
  check_matches("rule r { y = mul(x, 16777217)  => y = neg(x) }",
                "in x: i32[n]  a = mul(x, 16777217)  b = mul(x, 16777216)  out a, b", 1);
}

TEST_CASE("spellings: a name that is a number twice is one in the dtype of each op", "[rewriter]") {
  const std::string rule =
      "rule r { h = mul(x, c)  y = add(h, c)  => y = rms_norm(x, x){eps = c} }";
  check_matches(rule, "in x: f32[8]  h = mul(x, 0.1)  y = add(h, 0.10000000149011612)  out y", 1);
  check_matches(rule, "in x: f32[8]  h = mul(x, 0.1)  y = add(h, 0.2)  out y", 0);
}

TEST_CASE("spellings: cse merges nodes that read one number", "[rewriter]") {
  const World world("rule r { y = neg(x) => y = x }");
  Graph g = world.graph(R"(in x: f32[n], w: f64[n]
    c = full(){shape = [], value = 1.4142135381698608, dtype = f32}
    a = div(x, 1.4142135623730951)
    b = div(x, c)
    d = div(w, 1.4142135623730951)
    e = div(w, c)
    out a, b, d, e)");
  CHECK(eliminate_common(g) == 2);  // a constant and b
  CHECK(count(g, "div") == 3);
  CHECK(verify(g).empty());
}

TEST_CASE("spellings: the help for a near miss is true where it is given", "[rewriter]") {
  const std::string scores = "rule r { y = relu(neg(x))  => y = abs(x) }";
  CHECK(help_of(scores, "in x: f32[n]  y = relu(x)  out y") ==
        "N01: %x is an input of the graph, not a result of `neg`: no node of the graph "
        "computes this value: a pattern matches here only if it takes the value as given");
  CHECK(help_of(scores, "in x: f32[4]  y = relu(reshape(neg(x)){shape = [2, 2]})  out y")
            .find("a view is in between") != std::string::npos);
  CHECK(help_of(scores, "in x: f32[4]  y = relu(reshape(abs(x)){shape = [2, 2]})  out y")
            .find("view") == std::string::npos);
  CHECK(help_of(scores, "in x: f32[n]  y = neg(x)  out y").find("no node reads the value") !=
        std::string::npos);
  CHECK(help_of(transposed("dim0 = 0, dim1 = 1"),
                "in k: f32[4, 4, 4]  y = "
                "neg(transpose(k){dim0 = 1, dim1 = 2})  out y")
            .find("if the right side holds for every value") != std::string::npos);
  CHECK(help_of("rule r { y = relu(sum(x))  => y = abs(x) }",
                "in x: f32[4]  y = relu(sum(x){keepdim = true})  out y")
            .find("bind it, `{name}`, if the right side holds for every value") !=
        std::string::npos);
  CHECK(help_of("rule r { y = relu(mul(x, 2.0))  => y = relu(x + x) }",
                "in x: f32[4], z: f32[4]  y = relu(mul(x, z))  out y")
            .find("only a `constant` is a number") != std::string::npos);
}
