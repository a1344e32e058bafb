// The runner of `test` blocks, on the library's tests and on tests made to fail.
#include "verify/test_runner.hpp"

#include "tests/verify/rules.hpp"

using namespace pw;
using namespace pw::test;

TEST_CASE("test runner: all tests of the library pass", "[verify]") {
  const RuleSet rules = library_rules();
  const TestReport report = run_tests(rules);
  INFO(test_report_text(report, rules.context->sources));
  CHECK(report.failed() == 0);
  CHECK(report.tests.size() >= 25);
  CHECK(report.negative() >= 8);
}

namespace {

const char kNegated[] = "rule negated { y = neg(neg(x)) => y = x }  pass p = greedy { negated }  ";

TestResult run_one(const std::string& test) {
  const RuleSet rules = rules_of(kNegated + test);
  const TestReport report = run_tests(rules);
  REQUIRE(report.tests.size() == 1);
  return report.tests[0];
}
const std::string kTwice =
    "graph { in x: f32[n, 4]  y = neg(neg(x))  z = relu(y)  out z }  apply p  ";
const std::string kOnce = "graph { in x: f32[n, 4]  y = neg(x)  z = relu(y)  out z }  apply p  ";

}  // namespace

TEST_CASE("test runner: expectations that hold", "[verify]") {
  CHECK(run_one("test t { " + kTwice + "expect negated == 2 - 1, count(neg) == 0, negated >= 1 }")
            .passed());
  CHECK(run_one("test t { " + kTwice + "expect graph { in x: f32[n, 4]  z = relu(x)  out z } }")
            .passed());
  CHECK(run_one("test t { " + kTwice + "expect numeric within 0.0 }").passed());
  CHECK(run_one("test t { " + kOnce + "expect none }").passed());
}

TEST_CASE("test runner: expectations that do not hold are failures with a place", "[verify]") {
  for (const std::string expectation :
       {"expect negated == 0", "expect none", "expect count(relu) == 2",
        "expect error \"no such thing\"",
        "expect graph { in x: f32[n, 4]  y = neg(x)  z = relu(y)  out z }"}) {
    const TestResult result = run_one("test t { " + kTwice + expectation + " }");
    INFO(expectation);
    REQUIRE(result.failures.size() == 1);
    CHECK(result.failures[0].span.valid());
    CHECK(!result.failures[0].message.empty());
  }
}

TEST_CASE("test runner: because compares the code and a part of the message", "[verify]") {
  const std::string test = "test t { " + kOnce + "expect negated == 0 because ";
  const TestResult wrong = run_one(test + "N99 }");
  REQUIRE(wrong.failures.size() == 1);
  CHECK(wrong.negative);
  // The failure contains the matcher's reason; a test that states the reason passes.
  const std::string met = wrong.failures[0].detail;
  const std::size_t code = met.find(": ") + 2;
  CHECK(run_one(test + met.substr(code, 3) + " }").passed());
  CHECK(!run_one(test + met.substr(code, 3) + " \"another reason\" }").passed());
}

TEST_CASE("test runner: a wrong rule shows in the numbers", "[verify]") {
  const RuleSet rules = rules_of(R"(
    rule lost { y = neg(x) => y = abs(x) }
    pass p = greedy { lost }
    test t { graph { in x: bf16[n, 8]  y = neg(x)  out y }  apply p  expect numeric within 1e-2 }
  )");
  const TestReport report = run_tests(rules);
  REQUIRE(report.failed() == 1);
  CHECK(report.tests[0].failures[0].message.find("differs by") != std::string::npos);
}

TEST_CASE("test runner: numbers may differ by so much of the largest magnitude, and no more",
          "[verify]") {
  // x / 4 and x * 0.24 differ by 4 % of what x / 4 is, at its largest.
  const auto within = [](const std::string& tolerance) {
    const RuleSet rules = rules_of(
        "rule near { y = div(x, 4) => y = x * 0.24 }\npass p = greedy { near }\n"
        "test t { graph { in x: f32[n, 8]  y = x / 4  out y }  apply p  expect numeric within " +
        tolerance + " }");
    return run_tests(rules).failed() == 0;
  };
  CHECK(within("0.0401"));
  CHECK_FALSE(within("0.0399"));
}

TEST_CASE("test runner: only the requested tests run", "[verify]") {
  const RuleSet rules =
      rules_of(kNegated + ("test first { " + kTwice + "expect negated == 1 }  test second { " +
                           kTwice + "expect negated == 1 }"));
  TestOptions options;
  options.only = "sec";
  const TestReport report = run_tests(rules, {}, options);
  REQUIRE(report.tests.size() == 1);
  CHECK(report.tests[0].name == "second");
}

namespace {

const char kRanged[] = R"(
rule few  { y = relu(x: T[n, d])  where n <= 16  => y = maximum(x, 0) }
rule rest { y = relu(x: T[n, d])  where n > 16  => y = x + maximum(neg(x), 0) }
rule wrong { y = relu(x: T[n, d])  where n > 16  => y = neg(x) }
pipeline ranged { for tokens in ranges(16, 256) { greedy { few, rest } } }
pipeline broken { for tokens in ranges(16) { greedy { few, wrong } } }
)";

TestResult run_ranged(const std::string& expectations, const std::string& pass = "ranged") {
  const RuleSet rules = rules_of(kRanged + ("test t { graph { symbol n in 1..8192 tokens in x: "
                                            "f32[n, 4]  y = relu(x)  out y }  apply " +
                                            pass + "  " + expectations + " }"));
  TestReport report = run_tests(rules);
  REQUIRE(report.tests.size() == 1);
  return report.tests[0];
}

}  // namespace

TEST_CASE("test runner: a count names its range, or holds in every one", "[verify]") {
  CHECK(
      run_ranged("expect few == 1 in 1..16, few == 0 in 17..256, rest == 1 in 257..8192").passed());
  CHECK(run_ranged("expect count(relu) == 0, few + rest == 1").passed());
  CHECK(run_ranged("expect count(neg) == 1 in 20..30, few == 1 in 4..4").passed());
  const TestResult somewhere = run_ranged("expect few == 1");
  REQUIRE(somewhere.failures.size() == 1);
  CHECK(somewhere.failures[0].message.find("tokens 17..256: expected") == 0);
  CHECK_FALSE(somewhere.failures[0].fix);
  const TestResult named = run_ranged("expect few == 3 in 17..256");
  REQUIRE(named.failures.size() == 1);
  REQUIRE(named.failures[0].fix);
  CHECK(named.failures[0].fix->value == 0);
  const TestResult across = run_ranged("expect few == 1 in 1..256");
  REQUIRE(across.failures.size() == 1);
  CHECK(across.failures[0].detail == "the ranges are 1..16, 17..256, 257..8192\n");
}

TEST_CASE("test runner: numbers are compared in every range", "[verify]") {
  CHECK(run_ranged("expect numeric within 0.0").passed());
  const TestResult wrong = run_ranged("expect numeric within 1e-3", "broken");
  REQUIRE(wrong.failures.size() == 1);
  CHECK(wrong.failures[0].message.find("tokens 17..8192: output y differs") == 0);
}

TEST_CASE("test runner: a failed count can be put right in the text", "[verify]") {
  const std::string text =
      "rule negated { y = neg(neg(x)) => y = x }\n"
      "pass p = greedy { negated }\n"
      "test t {\n"
      "  graph { in x: f32[n, 4]  y = neg(neg(x))  z = relu(y)  out z }\n"
      "  apply p\n"
      "  expect negated == 10, count(neg) == 2, 1 == negated, negated == 2*3\n"
      "  expect negated == 0 because N01  // not a count to put right\n"
      "}\n";
  const RuleSet rules = rules_of(text);
  const TestReport report = run_tests(rules);
  REQUIRE(report.failed() == 1);
  const SourceMap& sources = rules.context->sources;
  const SourceId source = rules.files.back().source;
  std::string wanted = text;
  wanted.replace(wanted.find("== 10"), 5, "== 1");
  wanted.replace(wanted.find("(neg) == 2"), 10, "(neg) == 0");
  CHECK(updated_counts(report, sources, source) == wanted);
  CHECK(run_one("test t { " + kTwice + "expect negated == 1 }").passed());
  const RuleSet right = rules_of(kNegated + ("test t { " + kTwice + "expect negated == 1 }"));
  CHECK_FALSE(updated_counts(run_tests(right), right.context->sources, right.files.back().source));
}

TEST_CASE("test runner: an expected error is searched in the messages, not in the test's own line",
          "[verify]") {
  const std::string wrong = "graph { in x: f32[n]  y = neg(x, x)  out y }  apply p  expect error ";
  CHECK(run_one("test t { " + wrong + "\"operand\" }").passed());
  CHECK(run_one("test t { graph \"absent.pwg\"  apply p  expect error \"absent.pwg\" }").passed());
  const TestResult other = run_one("test t { " + wrong + "\"zebra\" }");
  REQUIRE(other.failures.size() == 1);
  CHECK(other.failures[0].message == "expected the error \"zebra\", got another");
}

TEST_CASE("test runner: because may name what happened over the passes", "[verify]") {
  const std::string rules =
      "rule early { y = relu(neg(x)) => y = abs(x) }\n"
      "rule late { y = exp(relu(neg(x))) => y = sin(x) }\n"
      "rule larger over early { y = exp(relu(neg(x))) => y = cos(x) }\n"
      "rule double { y = abs(x) => y = exp(exp(x)) }\n"
      "rule untyped { y = neg(x: T[*s]) => y = mm(x, x) }\n"
      "rule dear { y = sin(x) => y = exp(cos(x)) }\n"
      "pass first = greedy { early }\n"
      "pass second = greedy { late }\n"
      "pipeline starved { first second }\n"
      "pass together = greedy { early, larger }\n"
      "pass back = atomic greedy { double } ensures count(exp) == 0\n"
      "pass dry = greedy { double } fuel 1\n"
      "pass dry_back = atomic (greedy { double } fuel 1) ensures count(exp) == 0\n"
      "pass starved_back = atomic (first ; second) ensures count(neg) == 1\n"
      "pass choice = best of { greedy { double } | greedy { dear } } by nodes\n"
      "pass nothing = best of { greedy { double } | greedy { late } } by nodes\n"
      "pass wrong = greedy { untyped }\n"
      "pass skipped = greedy { double } when 1 > 2\n"
      "pipeline ranged { for tokens in ranges(16) { first second } }\n";
  const std::string chain =
      "graph { symbol n in 1..64 tokens  in x: f32[n, 8]  a = neg(x)  b = relu(a)  c = exp(b)  out "
      "c }  ";
  const std::string absolute =
      "graph { in x: f32[n, 8]  a = abs(x)  b = abs(a)  c = sin(b)  out c }  ";
  const auto judged = [&](const std::string& test) {
    const TestReport report = run_tests(rules_of(rules + "test t { " + test + " }"));
    REQUIRE(report.tests.size() == 1);
    INFO(test);
    for (const TestFailure& failure : report.tests[0].failures)
      UNSCOPED_INFO(failure.message + "\n" + failure.detail);
    return report.tests[0];
  };
  for (const std::string& holds : {
           chain +
               "apply starved expect late == 0 because N10 \"`early` at step 1 of pass `first`\"",
           chain + "apply first, second expect late == 0 because N10 \"`early`\"",
           chain + "apply ranged expect late == 0 in 1..16 because N10",
           chain + "apply together expect early == 0 because N16 \"`larger`\"",
           absolute + "apply dry expect double == 1 because N12 \"fuel\"",
           absolute + "apply dry_back expect none because N12 \"fuel\"",
           absolute +
               "apply choice expect dear == 1 expect double == 0 because N16 \"alternative 1\"",
           absolute + "apply nothing expect none because N16 \"alternative 1\"",
           chain + "apply starved_back expect none because N10 \"`early`\"",
           chain + "apply starved_back expect none because N17 \"count(neg) is 0\"",
           absolute + "apply back expect double == 0 because N17 \"`ensures count(exp) == 0`\"",
           absolute + "apply back expect none because N17 \"%a (exp)\"",
           absolute + "apply skipped expect none because N11 \"`when` is not true\"",
           chain + "apply wrong expect none because PW0306 \"right side cannot be typed\"",
       })
    CHECK(judged(holds).passed());
  for (const std::string& fails : {
           chain + "apply starved expect late == 0 because N01",
           chain + "apply starved expect late == 0 because N10 \"pass `second`\"",
           chain + "apply starved expect early == 1 because N12",
           chain + "apply starved expect none because N10",
           absolute + "apply dry_back expect none because N10",
           absolute + "apply back expect none because N12",
       }) {
    const TestResult result = judged(fails);
    REQUIRE(result.failures.size() == 1);
    CHECK_FALSE(result.failures[0].detail.empty());
  }
}
