// Rules checked by samples: those of the library hold, and wrong bodies and rules are refuted.
// tests/docs/check_verdicts.py judges all rules of the library by default, and a slow test here.
#include "verify/rule_check.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/verify/rules.hpp"

namespace {

using namespace pw;
using namespace pw::test;

std::string text_of(const RuleCheck& check) {
  return check.rule + ": " + check.judgement.print() + "\n";
}

/// Rules of which one side overflows, or divides by a scale that is 0, where the other does not:
/// 0.5x(1 + erf) doubles the largest x before it halves it, x · (1/s) is not x/s, and attention
/// that PyTorch writes out for ONNX zeroes rows that are not numbers.
bool may_overflow(const std::string& rule) {
  constexpr std::string_view kRules[] = {
      "gelu_spelled", "gelu_tanh_spelled", "quant_spelled.static",
      "attn_quant",   "mla_quant",         "attention_spelled"};
  return std::any_of(std::begin(kRules), std::end(kRules),
                     [&](std::string_view name) { return rule.starts_with(name); });
}

void check_holds(const RuleCheck& check) {
  INFO(text_of(check));
  const RuleVerdict verdict = check.judgement.verdict;
  const bool overflows = verdict == RuleVerdict::may_overflow && may_overflow(check.rule);
  CHECK((verdict == RuleVerdict::same_bits || verdict == RuleVerdict::rounds || overflows));
  if (!overflows) CHECK((check.judgement.ulps > 0) == (verdict == RuleVerdict::rounds));
  CHECK(check.instances >= 2);
  CHECK(check.runs > check.instances);
}

/// Checks the rules of the library that `chosen` accepts.
template <class Chosen>
void check_library(const RuleCheckOptions& options, const Chosen& chosen) {
  const RuleSet rules = library_rules();
  REQUIRE(rules.rules.size() >= 20);
  const Env params = bind_params(rules, {}).value();
  std::map<RuleVerdict, std::size_t> verdicts;
  std::size_t on_ranks = 0;
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    const Rule& rule = rules.rules[RuleId(i)];
    if (rule.frontier || !chosen(rules, rule)) continue;  // a frontier is never applied
    const RuleCheck check = check_rule(rules, RuleId(i), params, options);
    check_holds(check);
    ++verdicts[check.judgement.verdict];
    on_ranks += check.ranks == options.ranks ? 1 : 0;
  }
  std::cout << fmt::format(
      "{} rules have the same bits, {} round differently; {} of them on {} ranks\n",
      verdicts[RuleVerdict::same_bits], verdicts[RuleVerdict::rounds], on_ranks,
      fmt::join(options.ranks, ", "));
  CHECK(on_ranks >= 30);
}

}  // namespace

TEST_CASE("rule check: the library's rules for ranks hold on 2, 4, and 8 of them", "[verify]") {
  RuleCheckOptions options;
  options.tokens = {7};
  options.ranks = {2, 4, 8};
  check_library(options, uses_collectives);
}

TEST_CASE("rule check: the rules of frozen weights hold on generated graphs", "[verify]") {
  const RuleSet rules = checked_rules({"frozen"});
  const Env params = bind_params(rules, {}).value();
  // A folded weight is a product, and may overflow where the products of the sum do not.
  RuleCheckOptions folding;
  folding.contents = {Contents::ordinary};
  const std::vector<RuleId> folded = rules.resolve("folded.*"),
                            finished = rules.resolve("finished.*");
  CHECK(folded.size() == 4);
  CHECK(finished.size() == 5);
  for (RuleId id : folded) {
    const RuleCheck check = check_rule(rules, id, params, folding);
    check_holds(check);
    CHECK(check.judgement.verdict == RuleVerdict::rounds);
  }
  for (RuleId id : finished) {
    const RuleCheck check = check_rule(rules, id, params);
    check_holds(check);
    CHECK(check.judgement.verdict == RuleVerdict::same_bits);
  }
}

TEST_CASE("rule check: every rule of the library holds at several numbers of tokens",
          "[.slow][verify]") {
  RuleCheckOptions options;
  options.ranks = {2, 4, 8};
  const auto all = [](const RuleSet&, const Rule&) { return true; };
  check_library(options, all);
  options.tokens = {7};
  check_library(options, all);
}

TEST_CASE("rule check: a changed sign in the body of a fused op is seen", "[verify]") {
  struct Change {
    std::string file, rule, from, to;
  };
  const Change changes[] = {
      {"norm.pwr", "add_rms", "r = x + res", "r = x - res"},
      {"norm.pwr", "spelled.rms_norm_pow", "y = T(U(h * rsqrt(v + eps)) * w)",
       "y = T(U(h * rsqrt(v - eps)) * w)"},
      {"activation.pwr", "silu_spelled", "y = T(h / (1.0 + exp(neg(h))))",
       "y = T(h / (1.0 - exp(neg(h))))"},
  };
  for (const Change& change : changes) {
    for (const bool planted : {false, true}) {
      const RuleSet rules =
          library_with_op(change.file, change.from, planted ? change.to : change.from);
      const auto ids = rules.resolve(change.rule);
      REQUIRE(!ids.empty());
      for (const RuleId id : ids) {
        const RuleCheck check = check_rule(rules, id, bind_params(rules, {}).value());
        INFO(check.rule << (planted ? " planted" : " as it is") << "\n" << text_of(check));
        CHECK(check.holds() != planted);
      }
    }
  }
}

TEST_CASE("rule check: a wrong rule, and one that nothing can match, fail", "[verify]") {
  const RuleSet rules = rules_of(R"(
    rule swapped { y = sub(a, b) => y = sub(b, a) }
    rule fine { y = sub(a: f32[*s], neg(b: f32[*s])) => y = add(a, b) }
    rule impossible { y = relu(x: T[*b, d]) where d == 8, d == 16 => y = x }
    pass all = greedy { swapped, fine, impossible } fuel 100
  )");
  const Env params = bind_params(rules, {}).value();
  const auto passes = [&](const std::string& name) {
    return check_rule(rules, rules.resolve(name).at(0), params).holds();
  };
  CHECK(!passes("swapped"));
  CHECK(passes("fine"));
  const RuleCheck impossible = check_rule(rules, rules.resolve("impossible").at(0), params);
  CHECK(impossible.judgement.verdict == RuleVerdict::no_instance);
  CHECK(impossible.judgement.reason.find("no graph could be made") != std::string::npos);
}
