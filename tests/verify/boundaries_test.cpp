// GuardBoundary values of guards, and what the check of a rule does at them.
#include "verify/samples/boundaries.hpp"

#include <algorithm>

#include "tests/verify/rules.hpp"
#include "verify/rule_check.hpp"

namespace {

using namespace pw;
using namespace pw::test;

RuleSet with_guard(const std::string& guard, const std::string& more = "") {
  return rules_of("param least: int = 48\n" + more + "rule r { y = relu(relu(x: T[n, d])) where " +
                  guard + " => y = relu(x) }\npass all = greedy { r }");
}

/// "7 no, 8 yes" of the variable d.
std::string boundaries(const std::string& guard) {
  const RuleSet rules = with_guard(guard);
  const Env params = bind_params(rules, {}).value();
  std::string text;
  for (const GuardBoundary& b :
       boundaries_of(rules, rules.rules[rules.resolve("r").at(0)], params)) {
    CHECK(b.variable == "d");
    text += (text.empty() ? "" : ", ") + std::to_string(b.value) + (b.allowed ? " yes" : " no");
  }
  return text;
}

}  // namespace

TEST_CASE("boundaries: the least and the greatest value, and those beyond", "[verify]") {
  CHECK(boundaries("d % 8 == 0") == "7 no, 8 yes, 9 no, 15 no, 16 yes, 17 no");
  CHECK(boundaries("d in 1..256") == "1 yes, 256 yes, 257 no");
  CHECK(boundaries("d >= 4096") == "4095 no, 4096 yes");
  CHECK(boundaries("4096 < d") == "4096 no, 4097 yes");
  CHECK(boundaries("d != 5") == "1 yes, 5 no, 6 yes");
  CHECK(boundaries("d in {64, 128}") == "63 no, 64 yes, 65 no, 127 no, 128 yes, 129 no");
  CHECK(boundaries("d % 8 == 0 or d < 3") == "1 yes, 15 no, 16 yes, 17 no");
  // Guards on one variable are read together.
  CHECK(boundaries("d % 8 == 0, d >= 20") == "23 no, 24 yes, 25 no, 39 no, 40 yes, 41 no");
  CHECK(boundaries("d >= least") == "47 no, 48 yes");
  // What depends on two variables, and what nothing small meets, has none.
  CHECK(boundaries("n % d == 0").empty());
  CHECK(boundaries("d >= 100000").empty());
}

TEST_CASE("boundaries: a rule is run at them, and refused beyond", "[verify]") {
  const RuleSet rules = with_guard("d % 8 == 0, d >= 20");
  const Env params = bind_params(rules, {}).value();
  const RuleCheck check = check_rule(rules, rules.resolve("r").at(0), params);
  INFO(check.judgement.print());
  CHECK(check.holds());
  CHECK(check.held == 2);
  CHECK(check.refused == 4);
  CHECK(check.unreached.empty());
}

TEST_CASE("boundaries: a guard that is off by one is seen", "[verify]") {
  for (const auto& [most, right] : {std::pair("100", true), std::pair("101", false)}) {
    const RuleSet rules = rules_of(
        "rule r { y = relu(slice(x: f32[n, d]){dim = 1, start = 0, end = 100, step = 1}) where d "
        "<= " +
        std::string(most) + " => y = relu(x) }\npass all = greedy { r }");
    const RuleCheck check =
        check_rule(rules, rules.resolve("r").at(0), bind_params(rules, {}).value());
    INFO(most << check.judgement.print());
    CHECK(check.holds() == right);
    CHECK((!right || check.held >= 2));  // a refusal ends the check
  }
}
