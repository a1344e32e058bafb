// Combines two kinds of evidence about a rule. A proof holds for all inputs, a sample only for its
// own. Order of precedence: a counterexample refutes even a proved rule and marks a bug; a proof
// decides if no sample contradicts it; otherwise the verdict is `unknown`. Proved rules are still
// sampled lightly to check the prover. Verdicts are cached by the text of the rule.
#include "pipeline/judge/judge.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/characters.hpp"
#include "base/counted.hpp"
#include "base/try.hpp"
#include "pipeline/judge/proof_store.hpp"
#include "verify/traits.hpp"

namespace pw {
namespace {

/// Returns the graph of a sample as a test that fails until the rule is fixed.
std::string test_of(const std::string& rule, const std::string& reason) {
  constexpr std::string_view kHead = "graph instance {";
  const std::size_t at = reason.find(kHead);
  if (at == std::string::npos) return "";
  return fmt::format(
      "test {}_refuted {{\n  graph {{{}  apply {}\n  expect numeric within 0.0\n}}\n",
      as_name(rule), reason.substr(at + kHead.size()), rule);
}

bool is_proved(const proof::Proof& proof) {
  return proof.uncovered.empty() && (proof.proved() || proof.verdict == RuleVerdict::may_overflow);
}

bool within(const Specials& a, const Specials& b) {
  return (!a.nan || b.nan) && (!a.infinity || b.infinity) && (!a.zero_sign || b.zero_sign);
}

/// Returns true if a sample contradicts the proof. A proof of `rounds` covers only finite values,
/// and if it assumes finite sums, only samples with finite sums. A proof that treats both zeros as
/// equal does not cover their signs.
bool contradicts(const Judgement& seen, const proof::Proof& proof) {
  Specials excluded = seen.specials;
  if (proof.granted.contains(proof::kAnyZero)) excluded.zero_sign = false;
  switch (proof.verdict) {
    case RuleVerdict::same_bits:
      return seen.verdict != RuleVerdict::differs_only_for ? seen.verdict != RuleVerdict::same_bits
                                                           : excluded.any();
    case RuleVerdict::rounds:
      return seen.verdict >= (proof.granted.contains(proof::kPartialSums)
                                  ? RuleVerdict::refuted
                                  : RuleVerdict::may_overflow);
    case RuleVerdict::differs_only_for:
      return seen.verdict >= RuleVerdict::may_overflow || !within(excluded, proof.specials);
    case RuleVerdict::may_overflow:
    case RuleVerdict::refuted:
    case RuleVerdict::no_instance:
    case RuleVerdict::cannot_run:
    case RuleVerdict::unknown: break;
  }
  return seen.verdict == RuleVerdict::refuted;
}

/// Returns true for a rule without samples.
bool without_samples(const RuleCheck& samples) {
  const RuleVerdict verdict = samples.judgement.verdict;
  return verdict == RuleVerdict::no_instance || verdict == RuleVerdict::cannot_run;
}

/// Returns true if samples differ only for special values, but the proof has a finite input.
bool outdone(const Judgement& seen, const proof::Proof& proof) {
  return seen.verdict == RuleVerdict::differs_only_for && proof.flips;
}

void take_samples_verdict(RuleJudgement& out) {
  const Judgement& seen = out.samples.judgement;
  out.verdict = seen.verdict;
  out.known = KnownBy::samples;
  out.specials = seen.specials;
  out.reason = seen.reason;
  if (seen.verdict == RuleVerdict::refuted) out.test = test_of(out.rule, seen.reason);
}

void take_proof_verdict(RuleJudgement& out) {
  out.verdict = out.proof.verdict;
  out.known = KnownBy::proof;
  out.specials = out.proof.specials;
  if (out.verdict == RuleVerdict::differs_only_for) {
    Specials seen = out.samples.judgement.specials;
    seen.rounding = false;  // of a zero's sign after underflow
    out.specials.add(seen);
  }
  out.reason = out.proof.element.empty() ? out.proof.reason : out.proof.element;
}

std::string words(RuleVerdict verdict, const Specials& specials) {
  switch (verdict) {
    case RuleVerdict::same_bits: return "same bits";
    case RuleVerdict::rounds: return "rounds differently";
    case RuleVerdict::differs_only_for: return specials.words();
    case RuleVerdict::may_overflow: return "differs where it may overflow";
    case RuleVerdict::refuted: return "refuted";
    case RuleVerdict::no_instance: return "no instance";
    case RuleVerdict::cannot_run: return "cannot run";
    case RuleVerdict::unknown: return "unknown";
  }
  return "?";
}

std::string limit_or_obligation(const proof::Proof& proof) {
  if (!proof.uncovered.empty()) return "not covered: " + proof.uncovered;
  return proof.reason.rfind("limit", 0) == 0 ? proof.reason : "not proved: " + proof.reason;
}

/// Describes the result of the samples of a rule without a proof.
std::string open_reason(const RuleJudgement& judgement) {
  const RuleCheck& samples = judgement.samples;
  return fmt::format("{} in {}, {}", words(samples.judgement.verdict, samples.judgement.specials),
                     counted(samples.runs, "sample"), limit_or_obligation(judgement.proof));
}

/// Returns true if samples only test the proof: it claims the same bits, or it has so many ops that
/// samples of the whole space would take minutes for a library.
bool is_settled(const proof::Proof& proof, const Rule& rule) {
  constexpr std::size_t kFewNodes = 4;
  return proof.proved() && proof.uncovered.empty() &&
         (proof.verdict == RuleVerdict::same_bits || rule.nodes.size() > kFewNodes);
}

/// Returns the options of samples for a rule whose proof is settled.
RuleCheckOptions few_samples() {
  RuleCheckOptions options;
  options.instances.wanted = 3;
  options.instances.attempts = 6000;
  options.instances.refusals = 60;
  options.cover = false;
  return options;
}

}  // namespace

bool RuleJudgement::complete() const {
  return proof.proved() && proof.uncovered.empty() && verdict <= RuleVerdict::differs_only_for;
}

std::string RuleJudgement::left_to_show() const {
  if (complete()) return "";
  if (verdict == RuleVerdict::refuted || verdict == RuleVerdict::may_overflow)
    return words(verdict, specials) + ": " + reason.substr(0, reason.find('\n'));
  return proof.proved() ? "not covered: " + proof.uncovered : proof.reason;
}

bool RuleJudgement::holds() const {
  return verdict <= RuleVerdict::rounds || verdict == RuleVerdict::unknown;
}

std::string RuleJudgement::print() const {
  std::string text = words(verdict, specials);
  if (verdict > RuleVerdict::rounds && !reason.empty()) text += ": " + reason;
  if (!contradiction.empty())
    text += fmt::format(
        "\na proof claims `{}`, but this sample contradicts it: this is a bug in Piecewise, please "
        "report it",
        contradiction);
  return text;
}

RuleJudgement combine_evidence(proof::Proof proof, RuleCheck samples) {
  RuleJudgement out;
  out.rule = proof.rule;
  out.proof = std::move(proof);
  out.samples = std::move(samples);
  const Judgement& seen = out.samples.judgement;
  const bool sampled = !without_samples(out.samples), proved = is_proved(out.proof);
  if (proved && sampled && contradicts(seen, out.proof))
    out.contradiction = words(out.proof.verdict, out.proof.specials);
  if (proved && (!sampled || seen.verdict <= out.proof.verdict) && out.contradiction.empty()) {
    take_proof_verdict(out);
  } else if (proved || !sampled || (!seen.holds() && !outdone(seen, out.proof))) {
    take_samples_verdict(out);
  } else {
    out.reason = open_reason(out);
  }
  return out;
}

RuleJudgement judged_by_samples(RuleCheck samples) {
  RuleJudgement out;
  out.rule = samples.rule;
  out.samples = std::move(samples);
  take_samples_verdict(out);
  return out;
}

struct RuleJudge::State {
  const LoadedRules& rules;
  JudgeRequest request;
  std::unique_ptr<RuleProver> prover;  ///< null in a build without the proof lab

  [[nodiscard]] proof::Proof prove(RuleId rule) const {
    if (prover != nullptr) return prover->prove(rule);
    proof::Proof none;
    none.rule = rules.set.rules[rule].name;
    none.reason = kNoProofLab;
    return none;
  }
  ProofStore store;
};

RuleJudge::RuleJudge(const LoadedRules& rules, const JudgeRequest& request)
    : state_(new State{
          rules, request,
          proof_lab() == nullptr ? nullptr : proof_lab()->rule_prover(rules.set, rules.params),
          ProofStore(request.keep)}) {}
RuleJudge::~RuleJudge() = default;

RuleJudgement RuleJudge::judge(RuleId rule) {
  State& s = *state_;
  const std::string kind = fmt::format("ranks {}{}", fmt::join(s.request.ranks, ","),
                                       s.request.proved_only ? " proved only" : "");
  return s.store.get(s.rules, rule, kind, [&] {
    proof::Proof proof = s.prove(rule);
    if (s.request.proved_only && !is_proved(proof)) return combine_evidence(std::move(proof), {});
    RuleCheckOptions options =
        is_settled(proof, s.rules.set.rules[rule]) ? few_samples() : RuleCheckOptions();
    options.ranks = s.request.ranks;
    return combine_evidence(std::move(proof),
                            check_rule(s.rules.set, rule, s.rules.params, options));
  });
}

Result<std::vector<RuleId>> rules_to_judge(const RuleSet& rules,
                                           const std::vector<std::string>& only) {
  std::vector<RuleId> ids;
  const auto add = [&](RuleId id) {
    if (!rules.rules[id].frontier) ids.push_back(id);
  };
  for (const std::string& name : only) {
    const std::vector<RuleId> some = name.empty() ? std::vector<RuleId>() : rules.resolve(name);
    if (some.empty())
      return fail(error_at({}, "PW1420", "there is no rule `" + name + "`",
                           "`pwr check` lists the rules of a file"));
    std::for_each(some.begin(), some.end(), add);
  }
  for (std::size_t i = 0; only.empty() && i < rules.rules.size(); ++i) add(RuleId(i));
  return ids;
}

void note_missing_solver(const Log& log) {
  if (proof_lab() != nullptr && !proof_lab()->has_solver())
    log.say("found no SMT solver (libpw_z3.so), so some verdicts may be weaker");
}

Result<std::vector<RuleJudgement>> judge_rules(
    const LoadedRules& rules, const std::vector<std::string>& only, const JudgeRequest& request,
    const Log& log, const std::function<void(const RuleJudgement&)>& done) {
  const std::vector<RuleId> ids = PW_TRY(rules_to_judge(rules.set, only));
  PW_TRY(check_numbers("ranks", request.ranks, 1, 64));
  note_missing_solver(log);
  RuleJudge judge(rules, request);
  std::vector<RuleJudgement> out;
  for (RuleId id : ids) {
    log.progress({"judging", out.size(), ids.size(), "rules"});
    done(out.emplace_back(judge.judge(id)));
  }
  return out;
}

Result<std::vector<RuleJudgement>> judge_traits(const RuleSet& rules, const std::string& graph,
                                                const JudgeRequest& request, bool of_rules) {
  RuleCheckOptions options;
  options.ranks = request.ranks;
  std::vector<RuleCheck> checks;
  if (of_rules) checks = check_traits(rules, options);
  if (!graph.empty()) {
    const Graph loaded = PW_TRY(load_graph(rules.context, graph));
    for (RuleCheck& own : check_traits(loaded, options)) checks.push_back(std::move(own));
  }
  std::vector<RuleJudgement> out;
  for (RuleCheck& check : checks) out.push_back(judged_by_samples(std::move(check)));
  return out;
}

Diagnostics verdict_warnings(const RuleSet& rules, RuleId rule, const RuleJudgement& judgement,
                             const std::string& file) {
  const Rule& of = rules.rules[rule];
  const std::string help = fmt::format("pwr verify -r {} {}", file, of.name);
  const std::string first = judgement.reason.substr(0, judgement.reason.find('\n'));
  Diagnostics out;
  if (judgement.verdict == RuleVerdict::refuted) {
    const bool unfit = first.rfind("the match cannot be applied", 0) == 0;
    out.push_back(warning_at(
        of.name_span, "PW1153",
        fmt::format("`{}` {}: {}", of.name,
                    unfit ? "matches where it cannot be applied" : "changes the numbers", first),
        help));
  }
  if (judgement.verdict == RuleVerdict::may_overflow)
    out.push_back(warning_at(of.name_span, "PW1154",
                             fmt::format("`{}` may overflow: {}", of.name, first), help));
  if (!judgement.contradiction.empty())
    out.push_back(
        warning_at(of.name_span, "PW1155",
                   fmt::format("a proof and a sample of `{}` contradict each other; the "
                               "proof claims `{}`",
                               of.name, judgement.contradiction),
                   "this is a bug in Piecewise: please report it with the output of " + help));
  return out;
}

}  // namespace pw
