// Exports verify_rules and rules_to_verify.
#include "pipeline/verifying.hpp"

#include <algorithm>
#include <iterator>

#include "base/try.hpp"
#include "dsl/dsl.hpp"
#include "pipeline/proving.hpp"
#include "verify/traits.hpp"

namespace pw {
namespace {

/// Those of the files' ops, and of the graph's.
Result<std::vector<RuleCheck>> checked_traits(const RuleSet& rules, const VerifyRequest& request,
                                              const RuleCheckOptions& options) {
  std::vector<RuleCheck> out;
  if (request.only.empty()) out = check_traits(rules, options);
  if (request.graph.empty()) return out;
  const Graph graph = PW_TRY(load_graph(rules.context, request.graph));
  std::vector<RuleCheck> own = check_traits(graph, options);
  std::move(own.begin(), own.end(), std::back_inserter(out));
  return out;
}

bool within(const Specials& a, const Specials& b) {
  return (!a.nan || b.nan) && (!a.infinity || b.infinity) && (!a.zero_sign || b.zero_sign);
}

/// Whether the verdict of samples is proved: what is known of all graphs is no worse.
bool proves(const RuleProof& known, const Judgement& seen) {
  if (!known.complete()) return false;
  const RuleVerdict proved = known.proof.verdict;
  switch (seen.verdict) {
    case RuleVerdict::same_bits: return proved == RuleVerdict::same_bits;
    case RuleVerdict::rounds: return proved != RuleVerdict::differs_only_for;
    case RuleVerdict::differs_only_for:
      return proved != RuleVerdict::differs_only_for || within(known.proof.specials, seen.specials);
    case RuleVerdict::may_overflow: return proved == RuleVerdict::may_overflow;
    case RuleVerdict::refuted:
    case RuleVerdict::no_instance:
    case RuleVerdict::cannot_run:
    case RuleVerdict::not_proved: break;
  }
  return false;
}

}  // namespace

Result<std::vector<RuleId>> rules_to_verify(const RuleSet& rules,
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

Result<std::vector<RuleCheck>> verify_rules(const LoadedRules& rules, const VerifyRequest& request,
                                            const Log& log,
                                            const std::function<void(const RuleCheck&)>& done) {
  const std::vector<RuleId> ids = PW_TRY(rules_to_verify(rules.set, request.only));
  PW_TRY(check_numbers("ranks", request.ranks, 1, 64));
  RuleCheckOptions options;
  options.ranks = request.ranks;
  std::vector<RuleCheck> out;
  const auto add = [&](RuleCheck check) { done(out.emplace_back(std::move(check))); };
  RuleProver prover(rules, {.only = {}, .samples = false, .keep = true});
  for (RuleId id : ids) {
    log.progress({"verifying", out.size(), ids.size(), "rules"});
    RuleCheck check = check_rule(rules.set, id, rules.params, options);
    const RuleProof proof = prover.prove(id);
    if (proof.complete()) check.proved = proof.proof.verdict;
    if (proves(proof, check.judgement)) check.known = KnownBy::proof;
    add(std::move(check));
  }
  for (RuleCheck& trait : PW_TRY(checked_traits(rules.set, request, options)))
    add(std::move(trait));
  return out;
}

}  // namespace pw
