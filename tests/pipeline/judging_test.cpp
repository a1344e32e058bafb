// How a proof and samples combine to one verdict.
#include "dsl/dsl.hpp"
#include "pipeline/judge/judge.hpp"
#include "tests/catch.hpp"

namespace pw {
namespace {

proof::Proof proof_of(RuleVerdict verdict, const std::string& uncovered = "") {
  proof::Proof out;
  out.rule = "r";
  out.verdict = verdict;
  out.uncovered = uncovered;
  out.reason = verdict == RuleVerdict::unknown ? "a = b" : "";
  return out;
}

RuleCheck samples_of(RuleVerdict verdict) {
  RuleCheck out;
  out.rule = "r";
  out.runs = 7;
  out.judgement.verdict = verdict;
  if (verdict > RuleVerdict::rounds) out.judgement.reason = "y is 1 before and 2 after";
  if (verdict == RuleVerdict::differs_only_for) out.judgement.specials.nan = true;
  return out;
}

RuleJudgement judged(RuleVerdict proof, RuleVerdict samples) {
  return combine_evidence(proof_of(proof), samples_of(samples));
}

}  // namespace

TEST_CASE("judging: a proof decides what no sample contradicts", "[judging]") {
  struct Case {
    RuleVerdict proof, samples, verdict;
    KnownBy known;
  };
  using enum RuleVerdict;
  for (const Case& c : {Case{same_bits, same_bits, same_bits, KnownBy::proof},
                        Case{rounds, same_bits, rounds, KnownBy::proof},
                        Case{rounds, rounds, rounds, KnownBy::proof},
                        Case{rounds, differs_only_for, differs_only_for, KnownBy::samples},
                        Case{differs_only_for, rounds, differs_only_for, KnownBy::proof},
                        Case{may_overflow, rounds, may_overflow, KnownBy::proof},
                        Case{same_bits, no_instance, same_bits, KnownBy::proof},
                        Case{rounds, cannot_run, rounds, KnownBy::proof}}) {
    const RuleJudgement found = judged(c.proof, c.samples);
    INFO(name(c.proof) << " and " << name(c.samples));
    CHECK(found.verdict == c.verdict);
    CHECK(found.known == c.known);
    CHECK(found.contradiction.empty());
  }
}

TEST_CASE("judging: a counterexample beats a proof, and the contradiction is reported",
          "[judging]") {
  using enum RuleVerdict;
  for (const auto& [proof, samples] :
       {std::pair{same_bits, refuted}, std::pair{rounds, refuted}, std::pair{same_bits, rounds},
        std::pair{rounds, may_overflow}, std::pair{differs_only_for, may_overflow},
        std::pair{same_bits, differs_only_for}, std::pair{may_overflow, refuted}}) {
    const RuleJudgement found = judged(proof, samples);
    INFO(name(proof) << " and " << name(samples));
    CHECK(found.verdict == samples);
    CHECK(found.known == KnownBy::samples);
    CHECK_FALSE(found.contradiction.empty());
    CHECK(found.print().find("a bug in Piecewise") != std::string::npos);
  }
}

TEST_CASE("judging: without a proof, samples that agree show nothing", "[judging]") {
  using enum RuleVerdict;
  for (const RuleVerdict samples : {same_bits, rounds}) {
    const RuleJudgement found = judged(unknown, samples);
    CHECK(found.verdict == unknown);
    CHECK_FALSE(found.complete());
    CHECK(found.holds());
    CHECK(found.print().find("in 7 samples, not proved: a = b") != std::string::npos);
  }
  CHECK(judged(unknown, refuted).verdict == refuted);
  CHECK(judged(unknown, may_overflow).verdict == may_overflow);
  CHECK(judged(unknown, cannot_run).verdict == cannot_run);
  const RuleJudgement partly =
      combine_evidence(proof_of(same_bits, "[1] [n]"), samples_of(same_bits));
  CHECK(partly.verdict == unknown);
  CHECK(partly.left_to_show() == "not covered: [1] [n]");
}

TEST_CASE("judging: rules that change numbers are warned of", "[judging]") {
  const auto context = std::make_shared<Context>();
  RuleSet set =
      load_rule_texts(context, {{"t.pwr", "rule r { y = relu(x) => y = abs(x) }"}}).value();
  const auto codes = [&](RuleVerdict proof, RuleVerdict samples) {
    std::string out;
    for (const Diagnostic& d : verdict_warnings(set, RuleId(0), judged(proof, samples), "t.pwr"))
      out += d.code + " ";
    return out;
  };
  using enum RuleVerdict;
  CHECK(codes(same_bits, same_bits).empty());
  CHECK(codes(unknown, rounds).empty());
  CHECK(codes(unknown, refuted) == "PW1153 ");
  CHECK(codes(unknown, may_overflow) == "PW1154 ");
  CHECK(codes(same_bits, refuted) == "PW1153 PW1155 ");
}

}  // namespace pw
