// Traits of ops with bodies, of rule files and of graphs, against samples.
#include "verify/traits.hpp"

#include "tests/verify/rules.hpp"
#include "verify/test_runner.hpp"

namespace {

using namespace pw;
using namespace pw::test;

struct Declared {
  const char* op;
  const char* use;
  bool kept;
};

const Declared kOps[] = {
    {"op f(x: f32[*s], z: f32[*s]) -> y: f32[*s] commutative { y = x - z }", "f(x, z)", false},
    {"op f(x: f32[*s], z: f32[*s]) -> y: f32[*s] commutative { y = x * z }", "f(x, z)", true},
    {"op f(x: f32[*s], z: f32[*s]) {by: float = 2.0} -> y: f32[*s] commutative { y = x + by * z }",
     "f(x, z)", false},
    {"op f(x: f32[*s], z: f32[*s], w...: f32) -> y: f32[*s] commutative { y = x - z }",
     "f(x, z, x)", false},
    {"op `an op`(x: f32[*s], z: f32[*s]) -> y: f32[*s] commutative { y = x / z }", "`an op`(x, z)",
     false},
    {"op f(x: T[*s], z: T[*s]) -> (y: T[*s], w: T[*s]) commutative { y = x * z  w = x }", "f(x, z)",
     false},
    {"op f(x: f32[*s], z: f32[*s]) -> y: f32[*s] associative { y = x - z }", "f(x, z)", false},
    {"op f(x: f32[*s], z: f32[*s]) -> y: f32[*s] associative { y = maximum(x, z) }", "f(x, z)",
     true},
    {"op f(x: f32[*s], z: f32[*s]) {by: float = 3.0} -> y: f32[*s] associative { y = x + by * z }",
     "f(x, z)", false},
    {"op f(x: T[*s]) -> y: T[*s] view { y = x * 2.0 }", "f(x)", false},
    {"op f(x: T[n, d]) -> y: T[d, n] view { y = transpose(x){dim0 = 0, dim1 = 1} }", "f(x)", true},
    {"op f(x: f32[*s]) -> y: f32[*s] pointwise { y = x * exp(x) }", "f(x)", true},
    {"op f(x: f32[*s], z: f32[*s]) -> y: f32[*s] pointwise { y = x * neg(z) }", "f(x, z)", true},
    {"op f(x: f32[*b, d]) -> y: f32[*b, d] pointwise "
     "{ y = x - mean(x){dim = -1, keepdim = true} }",
     "f(x)", false},
    {"op f(x: f32[n, d]) -> y: f32[n, d] pointwise "
     "{ y = reshape(transpose(x){dim0 = 0, dim1 = 1}){shape = [n, d]} }",
     "f(x)", false},
};

std::string refusal(const Status& result) {
  if (result) return "";
  CHECK(result.error().front().code == "PW1320");
  CHECK(result.error().front().span.valid());
  return result.error().front().message;
}

}  // namespace

TEST_CASE("traits: a false one is refused, of a graph and of a rule file", "[verify]") {
  for (const auto& [op, use, kept] : kOps) {
    INFO(op);
    const auto context = std::make_shared<Context>();
    REQUIRE(load_op_library(context));
    const auto graph =
        parse_graph(context,
                    "graph g { " + std::string(op) + " in x: f32[4, 4], z: f32[4, 4]  a = " +
                        (std::string(op).find("w: T") == std::string::npos
                             ? "exp(" + std::string(use) + ")"
                             : std::string("exp(x)  b, c = ") + use) +
                        "  out a }",
                    "g.pwg");
    INFO((graph ? std::string() : render(graph.error(), context->sources)));
    REQUIRE(graph);
    const std::string of_graph = refusal(refuse_false_traits(*graph));
    INFO(of_graph);
    CHECK(of_graph.empty() == kept);
    const RuleSet rules = rules_of(op);
    const std::string of_rules = refusal(refuse_false_traits(rules));
    CHECK(of_rules.empty() == kept);
    const RuleCheckOptions options;
    const std::vector<RuleCheck> checks = check_traits(rules, options);
    REQUIRE(checks.size() == 1);
    INFO(checks[0].judgement.print());
    CHECK(checks[0].holds() == kept);
  }
}

TEST_CASE("traits: an op that a graph declares and only a body calls is looked at", "[verify]") {
  const auto context = std::make_shared<Context>();
  REQUIRE(load_op_library(context));
  const Graph graph = parse_graph(context, R"(graph g {
        op inner(x: f32[*s], z: f32[*s]) -> y: f32[*s] commutative { y = x - z }
        op outer(x: f32[*s], z: f32[*s]) -> y: f32[*s] { y = exp(inner(x, z)) }
        in x: f32[4], z: f32[4]
        y = outer(x, z)
        out y
      })",
                                  "g.pwg")
                          .value();
  CHECK(refusal(refuse_false_traits(graph)).find("`inner` is declared `commutative`") == 0);
}

TEST_CASE("traits: the library is not looked at each time, and a test's graph is", "[verify]") {
  CHECK(refuse_false_traits(library_rules()));
  const RuleSet rules = rules_of(R"(
    rule twice { y = relu(relu(x)) => y = relu(x) }
    pass p = greedy { twice }
    test own {
      graph {
        op mine(x: f32[*s], z: f32[*s]) -> y: f32[*s] commutative { y = x - z }
        in x: f32[4], z: f32[4]
        y = relu(relu(mine(x, z)))
        out y
      }
      apply p
      expect twice == 1
    }
    test other {
      graph { in x: f32[4]  y = relu(relu(x))  out y }
      apply p
      expect twice == 1
    }
  )");
  const TestReport report = run_tests(rules);
  REQUIRE(report.tests.size() == 2);
  REQUIRE(report.tests[0].failures.size() == 1);
  CHECK(report.tests[0].failures[0].detail.find("PW1320") != std::string::npos);
  CHECK(report.tests[1].passed());
}
