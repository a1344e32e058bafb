// Exports prove_rules.
#include "pipeline/proving.hpp"

#include <cctype>
#include <string_view>

#include <fmt/format.h>

#include "base/try.hpp"
#include "pipeline/proof_store.hpp"
#include "pipeline/verifying.hpp"

namespace pw {
namespace {

/// Few graphs: samples only look for a counterexample here.
RuleCheckOptions few_samples() {
  RuleCheckOptions options;
  options.instances.wanted = 3;
  options.instances.attempts = 6000;
  options.instances.refusals = 60;
  options.tokens = {1, 7};
  options.ranks = {2};
  return options;
}

/// The graph that a sample was seen on as a test, which fails as long as the rule is wrong.
std::string test_of(const std::string& rule, const std::string& reason) {
  constexpr std::string_view kHead = "graph instance {";
  const std::size_t at = reason.find(kHead);
  if (at == std::string::npos) return "";
  std::string name;
  for (char c : rule) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return fmt::format(
      "test {}_refuted {{\n  graph {{{}  apply {}\n  expect numeric within 0.0\n}}\n", name,
      reason.substr(at + kHead.size()), rule);
}

void take_samples(const LoadedRules& rules, RuleId id, RuleProof& out) {
  RuleCheckOptions options = few_samples();
  const bool proved = out.proof.proved();
  if (proved) {
    options.contents = {Contents::ordinary, Contents::infinite, Contents::nan};
  } else {
    options.instances.wanted = 6;
    options.ranks = {2, 4};
  }
  const RuleCheck check = check_rule(rules.set, id, rules.params, options);
  const Judgement& seen = check.judgement;
  out.ulps = seen.ulps;
  // What is equal over the reals is refuted by the reference alone, which rounds next to nothing.
  if (seen.verdict == RuleVerdict::refuted && (!proved || seen.unrounded)) {
    out.verdict = RuleVerdict::refuted;
    out.known = KnownBy::samples;
    out.reason = seen.reason;
    out.test = test_of(check.rule, seen.reason);
  } else if (seen.verdict == RuleVerdict::differs_only_for && proved) {
    out.verdict = RuleVerdict::differs_only_for;
    out.specials = seen.specials;
    out.reason = seen.reason;
  }
}

/// Whether samples cannot add to it.
bool is_settled(const proof::Proof& proof) {
  return (proof.verdict == RuleVerdict::same_bits ||
          proof.verdict == RuleVerdict::differs_only_for) &&
         proof.uncovered.empty();
}

RuleProof proved_alone(RuleId id, proof::Prover& prover) {
  RuleProof out;
  out.proof = prover.prove(id);
  out.verdict = out.proof.verdict;
  out.specials = out.proof.specials;
  out.reason = out.proof.reason.empty() ? out.proof.element : out.proof.reason;
  return out;
}

}  // namespace

bool RuleProof::complete() const {
  return proof.proved() && proof.uncovered.empty() && verdict != RuleVerdict::refuted;
}

std::string RuleProof::left_to_show() const {
  if (complete()) return "";
  if (verdict == RuleVerdict::refuted) return "refuted: " + reason.substr(0, reason.find('\n'));
  return proof.proved() ? "not covered: " + proof.uncovered : proof.reason;
}

std::string RuleProof::print() const {
  switch (verdict) {
    case RuleVerdict::same_bits: return "same bits";
    case RuleVerdict::rounds: return "rounds differently (over the reals)";
    case RuleVerdict::differs_only_for: return "differs only for " + specials.print();
    case RuleVerdict::may_overflow: return "differs where it may overflow";
    case RuleVerdict::refuted: return "refuted";
    case RuleVerdict::not_proved: return "not proved";
    case RuleVerdict::no_instance: return "no instance";
    case RuleVerdict::cannot_run: return "cannot run";
  }
  return "?";
}

struct RuleProver::State {
  const LoadedRules& rules;
  ProveRequest request;
  proof::Prover prover;
  ProofStore store;
};

RuleProver::RuleProver(const LoadedRules& rules, const ProveRequest& request)
    : state_(new State{rules, request, proof::Prover(rules.set, rules.params),
                       ProofStore(request.keep)}) {}
RuleProver::~RuleProver() = default;

RuleProof RuleProver::prove(RuleId rule) {
  State& s = *state_;
  RuleProof proved =
      s.store.get(s.rules, rule, "proof", [&] { return proved_alone(rule, s.prover); });
  if (!s.request.samples || is_settled(proved.proof)) return proved;
  return s.store.get(s.rules, rule, "samples", [&] {
    take_samples(s.rules, rule, proved);
    return proved;
  });
}

Result<std::vector<RuleProof>> prove_rules(const LoadedRules& rules, const ProveRequest& request,
                                           const Log& log,
                                           const std::function<void(const RuleProof&)>& done) {
  const std::vector<RuleId> ids = PW_TRY(rules_to_verify(rules.set, request.only));
  RuleProver prover(rules, request);
  std::vector<RuleProof> out;
  for (RuleId id : ids) {
    log.progress({"proving", out.size(), ids.size(), "rules"});
    done(out.emplace_back(prover.prove(id)));
  }
  return out;
}

}  // namespace pw
