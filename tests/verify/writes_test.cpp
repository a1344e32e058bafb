// Rules over ops that write: what inputs hold at the end is compared like any output.
#include "graph/text/text.hpp"
#include "rewriter/rewriter.hpp"
#include "tests/verify/rules.hpp"
#include "verify/rule_check.hpp"
#include "verify/test_runner.hpp"

namespace {

using namespace pw;
using namespace pw::test;

const std::string kWritingOps = R"(
  op put(mut c: f32[m, d], x: f32[m, d]) -> (o: f32[m, d] from c) { o = x }
  op acc(mut c: f32[m, d], x: f32[m, d]) -> (o: f32[m, d] from c) { o = c + x }
  op scale(mut c: f32[m, d], x: f32[m, d]) -> (o: f32[m, d] from c) { o = c * x }
  op step(mut c: f32[m, d], x: f32[m, d]) -> (o: f32[m, d] from c, s: f32[m, d]) {
    o = c + x
    s = relu(x)
  }
)";

RuleCheck checked(const std::string& rule) {
  const RuleSet rules =
      rules_of(kWritingOps + "rule r { " + rule + " }  pass p = greedy { r } fuel 1");
  static const RuleCheckOptions options;
  return check_rule(rules, rules.resolve("r").at(0), {}, options);
}

}  // namespace

TEST_CASE("writes: rules that lose, double, reorder or add one are refuted", "[verify]") {
  const char* kFalse[] = {
      "o, s = step(c, x) => o = c  s = relu(x)",
      "y = put(c, x) => y = c",
      "o = acc(c, x) => o = acc(acc(c, x), x)",
      "o = acc(c, x) => p = acc(c, x)  o = maximum(p, acc(c, x))",
      "a = acc(c, x)  b = scale(a, z) => e = scale(c, z)  b = acc(e, x)",
      "y = relu(x: f32[m, d]) => o, y = step(x, x)",
  };
  for (const char* rule : kFalse) {
    const RuleCheck check = checked(rule);
    INFO(rule << "\n" << check.judgement.print());
    CHECK(check.instances >= 1);
    CHECK(check.judgement.verdict == RuleVerdict::refuted);
  }
}

TEST_CASE("writes: rules that keep them hold", "[verify]") {
  for (const char* rule : {"y = put(c: f32[m, d], x: f32[m, d]) => y = x",
                           "o, s = step(c, x) => o = acc(c, x)  s = relu(x)",
                           "y = exp(put(c: f32[m, d], x: f32[m, d])) => y = exp(x)"}) {
    const RuleCheck check = checked(rule);
    INFO(rule << "\n" << check.judgement.print());
    CHECK(check.instances >= 1);
    CHECK(check.holds());
  }
}

TEST_CASE("writes: a result that only the input's memory shows is compared", "[verify]") {
  const RuleSet rules = rules_of(kWritingOps + R"(
    rule lost { o, s = step(c, x) => o = c  s = relu(x) }
    rule kept { o, s = step(c, x) => o = c + x  s = relu(x) }
    rule gone { o, s = step(c, x) => s = relu(x) }
    pass p = greedy { lost }
    pass q = greedy { kept }
    pass g = greedy { gone }
    test wrong {
      graph { in buffer c: f32[4, 2]  in x: f32[4, 2]  o, s = step(c, x)  out s }
      apply p
      expect numeric within 1e-6
    }
    test right {
      graph { in buffer c: f32[4, 2]  in x: f32[4, 2]  o, s = step(c, x)  out s }
      apply q
      expect numeric within 1e-6
    }
    test not_consumed {
      graph { in buffer c: f32[4, 2]  in x: f32[4, 2]  o, s = step(c, x)  out s }
      apply g
      expect gone == 0 because "`o` is consumed by this rule"
    }
  )");
  const TestReport report = run_tests(rules);
  REQUIRE(report.tests.size() == 3);
  INFO(test_report_text(report, rules.context->sources));
  REQUIRE(report.tests[0].failures.size() == 1);
  CHECK(report.tests[0].failures[0].message.find("output c differs") != std::string::npos);
  CHECK(report.tests[1].passed());
  CHECK(report.tests[2].passed());
}
